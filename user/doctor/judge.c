// SPDX-License-Identifier: BSD-2-Clause
/* The verdict of `proof`: whether the walks of a short recording came to the bottom of their stacks. */
#include <inttypes.h>

#include "doctor.h"
#include "record/losses.h"

#define TOLERABLE_PPM 10000 /* lost samples without a warning */

static void losses_text(const struct summary *s, struct text *out)
{
	for (size_t i = 0; i < prof_nlosses(s->prof); i++) {
		struct prof_loss loss;

		prof_loss(s->prof, i, &loss);
		if (!prof_is_outside(loss.reason))
			text_printf(out, "; lost %" PRIu64 " (%s): %s", loss.count, loss.reason,
				    loss_sentence(loss.reason));
	}
}

/* No sample was in Lua, so that no walk was tried: a warning, no failure. */
static void report_no_walk(const struct doctor *d, const struct summary *s, struct text *line)
{
	text_printf(line, "not proved: %.1f ms of CPU time in %.1f s: %s",
		    (double)s->stats.cpu_ns / 1e6, (double)s->stats.wall_ns / 1e9,
		    s->outside				    ? "all of it outside Lua"
		    : s->stats.end == SESSION_TARGETS_ENDED ? "the process has ended"
							    : "the process is idle");
	d->report(d->arg, DOCTOR_WARN, "proof", text_str(line), "ask again while it runs Lua code");
}

void doctor_judge(const struct doctor *d, const struct summary *s)
{
	enum doctor_verdict verdict = DOCTOR_OK;
	__text struct text line = {0};
	const char *remedy = "";

	if (!(s->resolved + s->lost)) {
		report_no_walk(d, s, &line);
		return;
	}
	text_printf(&line,
		    "%sproved on the live target: %" PRIu64 " of %" PRIu64
		    " walks came to their end; %" PRIu64 " samples outside Lua",
		    s->lost > s->resolved ? "not " : "", s->resolved, s->resolved + s->lost,
		    s->outside);
	losses_text(s, &line);
	if (summary_lost_ppm(s) > TOLERABLE_PPM)
		verdict = DOCTOR_WARN;
	if (s->lost > s->resolved) {
		verdict = DOCTOR_FAIL;
		remedy = "is the VM a patched build? Please report what the lines above say";
	}
	d->report(d->arg, verdict, "proof", text_str(&line), remedy);
}

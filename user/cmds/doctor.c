// SPDX-License-Identifier: BSD-2-Clause
/* doctor: a line per check on standard output; exit 1 when one failed. */
#include <string.h>

#include "base/caps.h"
#include "base/outfile.h"
#include "base/text.h"
#include "base/uses.h"
#include "cmds.h"
#include "doctor/doctor.h"

struct chart {
	FILE *to;
	size_t failed;
};

static void print(void *arg, enum doctor_verdict verdict, const char *object, const char *what,
		  const char *remedy)
{
	static const char *const words[] = {"ok", "warn", "fail"};
	__text struct text line = {0};
	struct chart *chart = arg;

	chart->failed += verdict == DOCTOR_FAIL;
	text_printf(&line, "%-4s  %s: ", words[verdict], object);
	text_put_clean(&line, what, strlen(what));
	if (*remedy)
		text_puts(&line, "; ");
	text_put_clean(&line, remedy, strlen(remedy));
	fprintf(chart->to, "%s\n", text_str(&line));
	fflush(chart->to); /* before the sampling, which takes PROOF_NS */
}

int cmd_doctor(const struct options *opts)
{
	__outfile struct outfile *out = NULL;
	struct chart chart = {};
	struct doctor doctor = {.report = print, .arg = &chart};
	struct error err = {};
	int ret = outfile_open("-", &out, &err);

	caps_more_files();
	if (!ret) {
		chart.to = outfile_stream(out);
		doctor_machine(&doctor);
		ret = caps_keep(USE_TARGETS | USE_LOADING, &err);
		if (!ret && opts->npids)
			doctor_processes(&doctor, opts->pids, opts->npids, opts->verbose);
		if (!ret)
			ret = outfile_commit(&out, &err);
	}
	if (ret) {
		cmd_error(ret, &err);
		return EXIT_FAILED;
	}
	return chart.failed ? EXIT_FAILED : EXIT_DONE;
}

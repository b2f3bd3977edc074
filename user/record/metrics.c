// SPDX-License-Identifier: BSD-2-Clause
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "losses.h"

void metrics_put_label(struct text *out, const char *value)
{
	__text struct text readable = {0};

	text_put_utf8(&readable, value, strlen(value));
	if (text_err(&readable))
		out->err = text_err(&readable);
	for (const char *c = text_str(&readable); *c; c++) {
		if (*c == '\\' || *c == '"')
			text_putc(out, '\\');
		text_putc(out, *c);
	}
}

static void put_head(struct text *out, const char *name, const char *type, const char *help)
{
	text_printf(out, "# HELP luabpf_%s %s\n# TYPE luabpf_%s %s\n", name, help, name, type);
}

static void put_count(struct text *out, const char *name, const char *type, uint64_t value,
		      const char *help)
{
	put_head(out, name, type, help);
	text_printf(out, "luabpf_%s %" PRIu64 "\n", name, value);
}

static void put_seconds(struct text *out, const char *name, const char *type, uint64_t ns,
			const char *help)
{
	put_head(out, name, type, help);
	text_printf(out, "luabpf_%s %" PRIu64 ".%09" PRIu64 "\n", name, ns / 1000000000,
		    ns % 1000000000);
}

/* All reasons from the first time on: a rate of one that appears later would lack its beginning. */
static void put_losses(struct text *out, const struct prof *prof)
{
	const char *reason;

	put_head(out, "lost_samples_total", "counter",
		 "Samples in Lua that have no stack, by reason.");
	for (size_t i = 0; (reason = loss_reason(i)); i++) {
		text_puts(out, "luabpf_lost_samples_total{reason=\"");
		metrics_put_label(out, reason);
		text_printf(out, "\"} %" PRIu64 "\n", prof_lost(prof, reason));
	}
}

static void put_samples(struct text *out, const struct summary *run)
{
	const struct session_stats *st = &run->stats;

	put_count(out, "samples_total", "counter", run->resolved + run->outside + run->lost,
		  "Samples of the sampled processes.");
	put_count(out, "resolved_samples_total", "counter", run->resolved,
		  "Samples that became a Lua stack.");
	put_count(out, "outside_lua_samples_total", "counter", run->outside,
		  "Samples of threads that ran no Lua.");
	put_losses(out, run->prof);
	put_count(out, "other_samples_total", "counter", run->other,
		  "Resolved samples with functions or stacks that the profile had no room for.");
	put_count(out, "snapshot_line_samples_total", "counter", st->snapshot_line,
		  "Resolved samples in compiled code whose line is that of a guard.");
	put_seconds(out, "sampled_cpu_seconds_total", "counter", st->cpu_ns,
		    "CPU time of the sampled processes.");
	if (summary_knows_cost(run)) {
		put_seconds(out, "bpf_seconds_total", "counter", st->bpf_ns,
			    "Run time of the BPF program.");
		put_count(out, "bpf_runs_total", "counter", st->bpf_runs,
			  "Runs of the BPF program.");
	}
	put_count(out, "ring_records_total", "counter", st->records,
		  "Records that were read from the ring buffer.");
}

static void put_vms(struct text *out, const struct metrics *m)
{
	put_head(out, "vm_build_info", "gauge", "A build of a Lua VM that was recognised.");
	for (uint32_t i = 0; i < m->nvms; i++) {
		text_printf(out, "luabpf_vm_build_info{build=\"%" PRIu32 "\",name=\"", i);
		metrics_put_label(out, m->vms[i]);
		text_puts(out, "\"} 1\n");
	}
}

int metrics_write(const struct metrics *m, FILE *to)
{
	__text struct text out = {0};

	put_head(&out, "build_info", "gauge", "The version of luabpf.");
	text_puts(&out, "luabpf_build_info{version=\"" LUABPF_VERSION "\"} 1\n");
	put_seconds(&out, "start_time_seconds", "gauge", m->run->stats.time_ns,
		    "When the recording began, since the epoch.");
	put_samples(&out, m->run);
	put_count(&out, "profiles_total", "counter", m->profiles, "Intervals that were written.");
	put_count(&out, "unwritten_profiles_total", "counter", m->unwritten_profiles,
		  "Intervals of which an output could not be written.");
	put_count(&out, "unwritten_metrics_total", "counter", m->unwritten_metrics,
		  "Times at which this file could not be written.");
	put_seconds(&out, "last_profile_timestamp_seconds", "gauge", m->last_profile_ns,
		    "When the last interval was written, since the epoch; 0: none yet.");
	put_seconds(&out, "cpu_seconds_total", "counter", clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		    "CPU time of luabpf itself.");
#define SIZE(name, sentence) put_count(&out, #name, "gauge", m->run->sizes->name, sentence);
#include "sizes.def"
#undef SIZE
	put_vms(&out, m);
	if (text_err(&out))
		return text_err(&out);
	return fputs(text_str(&out), to) < 0 ? -EIO : 0;
}

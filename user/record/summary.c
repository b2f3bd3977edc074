// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "losses.h"
#include "summary.h"

/* of enum session_end */
static const char *const end_names[] = {"duration", "signal", "targets-ended", "interval",
					"hangup"};

/* Fewer lost samples than this say nothing about the build. */
#define DOUBTFUL 20

/*
 * The sentence on samples that were not taken: this part of them, of so many periods. A kernel that
 * is busy drops some; at short periods, many, and these look like those of threads that were short.
 */
#define MISSING_REPORTED 0.3
#define MISSING_REPORTED_OF_MANY 0.6
#define MISSING_PERIODS 20
#define MISSING_EVENT_NS 900000

void summary_make(const struct session_stats *stats, const struct prof *prof, struct summary *out)
{
	size_t i;

	*out = (struct summary){.stats = *stats, .prof = prof, .resolved = prof_samples(prof)};
	out->other = prof_other(prof);
	for (i = 0; i < prof_nrows(prof); i++) {
		struct prof_row row;

		prof_row(prof, i, &row);
		if (row.labels.vmstate == 'N')
			out->compiled += row.count;
	}
	for (i = 0; i < prof_nlosses(prof); i++) {
		struct prof_loss loss;

		prof_loss(prof, i, &loss);
		if (prof_is_outside(loss.reason))
			out->outside += loss.count;
		else
			out->lost += loss.count;
	}
}

uint64_t summary_lost_ppm(const struct summary *s)
{
	uint64_t all = s->resolved + s->lost;

	return all ? (uint64_t)((double)s->lost * 1e6 / (double)all) : 0;
}

/* Samples per second of the targets' CPU time. */
static double achieved_hz(const struct summary *s)
{
	double all = (double)(s->resolved + s->outside + s->lost);

	return s->stats.cpu_ns ? all * 1e9 / (double)s->stats.cpu_ns : 0;
}

static double requested_hz(const struct summary *s)
{
	return s->stats.period_ns ? 1e9 / (double)s->stats.period_ns : 0;
}

bool summary_knows_cost(const struct summary *s)
{
	return s->stats.bpf_runs || !(s->resolved + s->outside + s->lost);
}

/* Events that take no sample (bpf/maps.bpf.h, events_per_sample) are part of its cost. */
static double bpf_ns_per_sample(const struct summary *s)
{
	double all = (double)(s->resolved + s->outside + s->lost);

	return all ? (double)s->stats.bpf_ns / all : 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_losses(const struct summary *s, FILE *to)
{
	size_t i;

	for (i = 0; i < prof_nlosses(s->prof); i++) {
		struct prof_loss loss;

		prof_loss(s->prof, i, &loss);
		if (!prof_is_outside(loss.reason))
			fprintf(to, "luabpf: lost %" PRIu64 " (%s): %s\n", loss.count, loss.reason,
				loss_sentence(loss.reason));
	}
}

void summary_print_other(uint64_t n, FILE *to)
{
	if (n)
		fprintf(to,
			"luabpf: %" PRIu64 " sample%s with (other) in the stack: the profile had "
			"no room for more functions (%lu MiB) or stacks (%lu MiB)\n",
			n, plural(n), PROF_MAX_FRAMES >> 20, PROF_MAX_ROWS >> 20);
}

/* Prints why there are no samples. */
static void print_nothing(const struct summary *s, FILE *to)
{
	if (s->stats.closed)
		fprintf(to, "luabpf: no samples: the files of a process could not be opened (see "
			    "above), which may run Lua\n");
	else if (s->stats.everywhere && s->stats.cpu_ns < s->stats.period_ns)
		fprintf(to, "luabpf: no samples: no process that runs Lua used the CPU, or none "
			    "was there (luabpf samples CPU time)\n");
	else if (s->stats.cpu_ns < s->stats.period_ns)
		fprintf(to,
			"luabpf: no samples: the target used %.1f ms of CPU time; it was idle, or "
			"waited (luabpf samples CPU time)\n",
			(double)s->stats.cpu_ns / 1e6);
	else if (s->outside && !s->lost)
		fprintf(to,
			"luabpf: no samples in Lua: the target used %.1f s of CPU time, all of it "
			"outside Lua\n",
			(double)s->stats.cpu_ns / 1e9);
}

/* Losses that a wrong layout would cause. */
static uint64_t lost_to_layout(const struct summary *s)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < prof_nlosses(s->prof); i++) {
		struct prof_loss loss;

		prof_loss(s->prof, i, &loss);
		if (!strncmp(loss.reason, "layout-", strlen("layout-")) ||
		    !strcmp(loss.reason, "stack-changing") || !strcmp(loss.reason, "fault") ||
		    !strcmp(loss.reason, "bad-trace"))
			n += loss.count;
	}
	return n;
}

/*
 * Each thread's first event comes after a period of its own CPU time. A thread that starts short
 * ones may lose its CPU time to them, see loader_keep_time(). A guest's clock of CPU time runs on
 * while the host runs others, if the kernel does not learn of it, and the timer fires once for all
 * periods of that time.
 */
static void print_missing(const struct summary *s, FILE *to)
{
	double hz = requested_hz(s), missing = hz ? 1 - achieved_hz(s) / hz : 0;
	bool many = s->stats.event_ns < MISSING_EVENT_NS;

	if (s->stats.cpu_ns < MISSING_PERIODS * s->stats.period_ns ||
	    missing < (many ? MISSING_REPORTED_OF_MANY : MISSING_REPORTED))
		return;
	fprintf(to, "luabpf: %.0f %% of the CPU time has no samples: ", 100 * missing);
	if (many)
		fprintf(to,
			"the kernel dropped them, or it was used by threads and processes that ran "
			"for less than %.2f ms, by those that start them, and by the switches of "
			"threads that wait often, which sampling makes slower",
			(double)s->stats.event_ns / 1e6);
	else
		fprintf(to,
			"it was used by threads and processes that ran for less than %.1f ms, "
			"by those that start them, and by the switches of threads that wait often, "
			"which sampling makes slower; -F %.0f would show more",
			(double)s->stats.event_ns / 1e6, 1e10 / (double)s->stats.event_ns);
	fprintf(to, "; in a virtual machine it may be time that the host gave to others\n");
}

void summary_print(const struct summary *s, const char *written, FILE *to)
{
	uint64_t all = s->resolved + s->outside + s->lost;

	fprintf(to,
		"luabpf: %s%s%" PRIu64 " sample%s, %" PRIu64
		" stack%s, %.1f s of CPU time in %.1f s",
		written ? written : "", written ? ": " : "", s->resolved, plural(s->resolved),
		s->stats.stacks, plural(s->stats.stacks), (double)s->stats.cpu_ns / 1e9,
		(double)s->stats.wall_ns / 1e9);
	fprintf(to, " at %.1f of %.1f Hz; outside Lua %.1f %%; lost %" PRIu64, achieved_hz(s),
		requested_hz(s), percent(s->outside, all), s->lost);
	if (s->lost)
		fprintf(to, " (%.2f %%)", (double)summary_lost_ppm(s) / 1e4);
	if (s->stats.bpf_ns && all)
		fprintf(to, "; %.0f ns in BPF per sample", bpf_ns_per_sample(s));
	fprintf(to, "\n");
	print_losses(s, to);
	summary_print_other(s->other, to);
	if (!s->resolved)
		print_nothing(s, to);
	print_missing(s, to);
	if (lost_to_layout(s) > s->resolved && lost_to_layout(s) >= DOUBTFUL)
		fprintf(to,
			"luabpf: most samples in Lua could not be walked: a VM that was patched? "
			"The rest may be wrong, too; luabpf doctor -p PID shows what was "
			"measured\n");
}

/* Compiled code of which lines are guesses is reported from this part of the samples on; in a report without lines, where
 * only an inlined function may be another one, from the second. */
#define COARSE_REPORTED 0.01
#define COARSE_FUNCTIONS_REPORTED 0.05

void summary_print_lines(const struct prof *prof, bool lines, FILE *to)
{
	const double least = lines ? COARSE_REPORTED : COARSE_FUNCTIONS_REPORTED;
	uint64_t coarse = 0;
	struct prof_row row;

	for (size_t i = 0; i < prof_nrows(prof); i++) {
		prof_row(prof, i, &row);
		if (row.labels.snapshot_line)
			coarse += row.count;
	}
	if (!coarse || (double)coarse < least * (double)prof_samples(prof))
		return;
	fprintf(to,
		"luabpf: %.0f %% of the samples are compiled code that could not be followed: %s "
		"there is that of the last guard before: luabpf(1), COMPILED CODE\n",
		percent(coarse, prof_samples(prof)), lines ? "a line" : "an inlined function");
}

/* Samples with an unknown zone are reported from this part of the samples on. */
#define UNKNOWN_ZONES_REPORTED 0.01

void summary_print_zones(const struct summary *s, const char *module, FILE *to)
{
	const struct session_zones *z = s->zones;
	__text struct text name = {0};

	text_put_clean(&name, module ? module : "", module ? strlen(module) : 0);
	if (z->without && module)
		fprintf(to,
			"luabpf: %" PRIu64 " of %" PRIu64
			" VM%s had no zones: package.loaded has no "
			"table %s there\n",
			z->without, z->vms, plural(z->vms), text_str(&name));
	else if (z->without)
		fprintf(to,
			"luabpf: %" PRIu64 " of %" PRIu64 " VM%s had no zones: the module is "
			"jit.zone in LuaJIT, and zone, which comes with luabpf, in PUC Lua; for "
			"another one: --zone-from\n",
			z->without, z->vms, plural(z->vms));
	if (s->resolved && (double)z->unknown >= UNKNOWN_ZONES_REPORTED * (double)s->resolved)
		fprintf(to,
			"luabpf: %.0f %% of the samples have an unknown zone: they were taken "
			"before the VM's zone stack was found, while it grew, or after "
			"package.loaded lost it, or it is no array of strings\n",
			percent(z->unknown, s->resolved));
}

void summary_print_ends(const struct summary *s, FILE *to)
{
	static const char *const keys[] = {
#define LB_STATUS(id, class, key, sentence) key,
#include <unwind/status.def>
#undef LB_STATUS
	};

	fprintf(to, "luabpf: in the kernel:");
	for (size_t i = 0; i < LB_STATUS__MAX; i++) {
		if (s->stats.status_counts[i])
			fprintf(to, " %" PRIu64 " %s,", s->stats.status_counts[i], keys[i]);
	}
	if (summary_knows_cost(s))
		fprintf(to, " %" PRIu64 " run%s of BPF", s->stats.bpf_runs,
			plural(s->stats.bpf_runs));
	else
		fputs(" runs of BPF were not counted (they need CAP_SYS_ADMIN)", to);
	if (s->stats.first_sample_ns)
		fprintf(to, "; first sample after %.1f ms", (double)s->stats.first_sample_ns / 1e6);
	fprintf(to, "; ended by %s\n", end_names[s->stats.end]);
}

static cJSON *losses_json(const struct summary *s)
{
	cJSON *object = cJSON_CreateObject();
	size_t i;

	for (i = 0; object && i < prof_nlosses(s->prof); i++) {
		struct prof_loss loss;

		prof_loss(s->prof, i, &loss);
		if (!prof_is_outside(loss.reason))
			cJSON_AddNumberToObject(object, loss.reason, (double)loss.count);
	}
	return object;
}

static void add_counts(const struct summary *s, cJSON *to)
{
	cJSON_AddNumberToObject(to, "samples", (double)(s->resolved + s->outside + s->lost));
	cJSON_AddNumberToObject(to, "resolved", (double)s->resolved);
	cJSON_AddNumberToObject(to, "outside_lua", (double)s->outside);
	cJSON_AddNumberToObject(to, "lost", (double)s->lost);
	cJSON_AddItemToObject(to, "lost_by_reason", losses_json(s));
	cJSON_AddNumberToObject(to, "snapshot_line", (double)s->stats.snapshot_line);
	cJSON_AddNumberToObject(to, "other", (double)s->other);
	cJSON_AddNumberToObject(to, "stacks", (double)s->stats.stacks);
}

static void add_times(const struct summary *s, cJSON *to)
{
	const struct session_stats *st = &s->stats;

	cJSON_AddNumberToObject(to, "cpu_seconds", (double)st->cpu_ns / 1e9);
	cJSON_AddNumberToObject(to, "wall_seconds", (double)st->wall_ns / 1e9);
	cJSON_AddNumberToObject(to, "start_seconds", (double)st->time_ns / 1e9);
}

static void add_zones(const struct session_zones *zones, cJSON *to)
{
	cJSON_AddNumberToObject(to, "vms", (double)zones->vms);
	cJSON_AddNumberToObject(to, "vms_without", (double)zones->without);
	cJSON_AddNumberToObject(to, "unknown", (double)zones->unknown);
}

static void add_sizes(const struct session_sizes *sizes, cJSON *to)
{
	if (!sizes)
		return;
#define SIZE(name, sentence) cJSON_AddNumberToObject(to, #name, (double)sizes->name);
#include "sizes.def"
#undef SIZE
}

int summary_json(const struct summary *s, FILE *to)
{
	const struct session_stats *st = &s->stats;
	cJSON *root = cJSON_CreateObject();
	char *text;

	add_counts(s, root);
	cJSON_AddNumberToObject(root, "requested_hz", requested_hz(s));
	cJSON_AddNumberToObject(root, "achieved_hz", achieved_hz(s));
	add_times(s, root);
	cJSON_AddNumberToObject(root, "first_sample_seconds", (double)st->first_sample_ns / 1e9);
	if (summary_knows_cost(s)) {
		cJSON_AddNumberToObject(root, "bpf_ns_per_sample", bpf_ns_per_sample(s));
		cJSON_AddNumberToObject(root, "bpf_runs", (double)st->bpf_runs);
	} else {
		cJSON_AddNullToObject(root, "bpf_ns_per_sample");
		cJSON_AddNullToObject(root, "bpf_runs");
	}
	cJSON_AddNumberToObject(root, "ring_records", (double)st->records);
	cJSON_AddStringToObject(root, "ended_by", end_names[st->end]);
	add_sizes(s->sizes, cJSON_AddObjectToObject(root, "sizes"));
	if (s->zones)
		add_zones(s->zones, cJSON_AddObjectToObject(root, "zones"));
	if (s->run) {
		cJSON *run = cJSON_AddObjectToObject(root, "run");

		add_counts(s->run, run);
		add_times(s->run, run);
	}
	text = cJSON_Print(root);
	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	fprintf(to, "%s\n", text);
	cJSON_free(text);
	return 0;
}

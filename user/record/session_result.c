// SPDX-License-Identifier: BSD-2-Clause
/* The results of a recording: counts, builds, limits, the right to open source files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/usage.h"
#include "proc/process.h"
#include "session_priv.h"
#include "source_open.h"

static uint64_t sampled_ns(const struct session *s, const uint64_t status_counts[LB_STATUS__MAX])
{
	uint64_t n = 0;

	for (int i = 0; i < LB_STATUS__MAX; i++)
		n += status_counts[i];
	return n * s->period_ns;
}

static void stats_between(const struct session *s, const struct moment *from,
			  const struct moment *to, struct session_stats *stats)
{
	uint64_t first = loader_first_sample(s->loader);

	*stats = (struct session_stats){
		.end = s->end,
		.period_ns = s->period_ns,
		.event_ns = loader_event_ns(s->loader),
		.wall_ns = to->ns - from->ns,
		.cpu_ns = to->cpu_ns - from->cpu_ns,
		.stacks = prof_nrows(s->intervals.prof),
		.snapshot_line = to->snapshot_line - from->snapshot_line,
		.bpf_ns = to->bpf_ns - from->bpf_ns,
		.bpf_runs = to->bpf_runs - from->bpf_runs,
		.records = to->records - from->records,
		.time_ns = from->time_ns,
		.first_sample_ns = first ? first - s->opened_ns : 0,
		.everywhere = s->targets.everywhere,
		.closed = s->targets.closed,
		.command_ended = s->command_ended,
		.command_status = s->command_status,
	};
	for (int i = 0; i < LB_STATUS__MAX; i++)
		stats->status_counts[i] = to->status_counts[i] - from->status_counts[i];
	if (s->targets.everywhere) /* the events count all that their CPUs did */
		stats->cpu_ns = sampled_ns(s, stats->status_counts);
}

void session_stats(const struct session *s, struct session_stats *stats)
{
	stats_between(s, &s->intervals.start, &s->intervals.counted, stats);
	stats->stacks += s->intervals.stacks_before;
}

void session_interval(const struct session *s, struct session_stats *stats)
{
	stats_between(s, &s->intervals.begin, &s->intervals.counted, stats);
}

int session_total(const struct session *s, struct prof **out)
{
	return intervals_total(&s->intervals, out);
}

void session_sizes(const struct session *s, struct session_sizes *sizes)
{
	const struct processes *processes = &s->targets.processes;
	size_t builds;

	*sizes = (struct session_sizes){
		.known_processes = HASH_COUNT(processes->all),
		.ended_processes = HASH_COUNT(processes->ended),
		.map_processes = loader_procs(s->loader),
		.scanned_files = scan_files(s->scan, &builds),
		.profile_stacks = prof_nrows(s->intervals.prof),
		.profile_frames = prof_nframes(s->intervals.prof),
		.profile_strings = prof_nstrings(s->intervals.prof),
		.profile_bytes = prof_bytes(s->intervals.prof),
		.resident_memory_bytes = usage_resident_bytes(),
		.open_fds = usage_open_fds(),
	};
	sizes->symbol_files = symbolizer_files(s->symbolizer, &sizes->symbol_bytes);
	sizes->vm_builds = builds;
	for (const struct process *p = processes->all; p; p = p->hh.next) {
		struct image_sizes image = {};

		sizes->processes += p->registered && p->vms.nmodules;
		if (p->image)
			image = image_sizes(p->image);
		sizes->prototypes += image.prototypes;
		sizes->cached_frames += image.frames;
	}
}

void session_zones(const struct session *s, struct session_zones *out)
{
	struct zones_counts counts;

	symbolizer_zones(s->symbolizer, &counts);
	*out = (struct session_zones){
		.vms = counts.vms, .without = counts.without, .unknown = counts.unknown};
}

static uint64_t samples_of(const struct prof *prof, pid_t pid)
{
	uint64_t n = 0;

	for (size_t i = 0; i < prof_nrows(prof); i++) {
		struct prof_row row;

		prof_row(prof, i, &row);
		n += row.labels.pid == (uint32_t)pid ? row.count : 0;
	}
	return n;
}

int session_process(const struct session *s, pid_t pid, struct session_stats *stats,
		    struct prof **out)
{
	uint64_t samples = samples_of(s->intervals.prof, pid);

	*stats = (struct session_stats){
		.end = process_check(pid, NULL) ? SESSION_TARGETS_ENDED : SESSION_DURATION,
		.period_ns = s->period_ns,
		.wall_ns = s->stopped_ns - s->intervals.start.ns,
	};
	loader_process_status_counts(s->loader, pid, stats->status_counts);
	stats->cpu_ns = sampled_ns(s, stats->status_counts);
	return losses_of_process(pid, stats->status_counts, samples, out);
}

struct prof *session_prof(struct session *s)
{
	return s->intervals.prof;
}

/* Builds that differ in a layout may have the same name. */
static bool is_named_before(const struct scan *scan, uint32_t build)
{
	for (uint32_t i = 0; i < build; i++)
		if (!strcmp(scan_build(scan, i)->name, scan_build(scan, build)->name))
			return true;
	return false;
}

void session_describe(const struct session *s, char *buf, size_t size)
{
	const struct vm_build *b;
	size_t used = 0;
	uint32_t i;

	buf[0] = '\0';
	for (i = 0; (b = scan_build(s->scan, i)); i++) {
		int n = is_named_before(s->scan, i)
				? 0
				: snprintf(buf + used, size - used, "%s%s", i ? ", " : "", b->name);

		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

const char *session_unsampled(const struct session *s)
{
	return s->targets.unsampled.what;
}

const char *session_limit(const struct session *s, uint32_t i, const char **build)
{
	const struct vm_build *b = scan_build(s->scan, i);

	if (!b)
		return NULL;
	*build = b->name;
	if (b->build.family == LB_FAMILY_PUC && !b->gc_lo)
		return "the collector's code was not found in this file: its time shows as C code "
		       "and as Interpreted";
	return "";
}

int session_open_source(void *session, const char *path, FILE **out)
{
	struct session *s = session;

	return sources_open(&s->targets.processes, s->intervals.prof, path, out);
}

int session_wait_command(struct session *s)
{
	if (s->command && !s->command_ended) {
		while (waitpid(s->command, &s->command_status, 0) < 0)
			if (errno != EINTR)
				return -errno;
		s->command_ended = true;
	}
	return s->command_status;
}

size_t session_roots(const struct session *s, pid_t *pids, size_t max)
{
	size_t n = 0;

	for (const struct process *p = s->targets.processes.all; p; p = p->hh.next) {
		if (!p->is_root)
			continue;
		if (n < max)
			pids[n] = p->pid;
		n++;
	}
	return n;
}

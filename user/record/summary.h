/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording's summary: the line at the end, the reasons of losses, the --stats JSON. */
#ifndef RECORD_SUMMARY_H
#define RECORD_SUMMARY_H

#include <stdio.h>

#include "prof/prof.h"
#include "session.h"

/* All samples of the targets, by how they ended. */
struct summary {
	struct session_stats stats;
	const struct prof *prof; /* borrowed */
	uint64_t resolved;	 /* in the profile */
	uint64_t compiled;	 /* of these, in compiled code */
	uint64_t other;		 /* of these, with functions that the profile had no room for */
	uint64_t outside;	 /* their thread ran no Lua */
	uint64_t lost;		 /* all others */

	/* for summary_json(), borrowed; NULL: not shown */
	const struct session_sizes *sizes;
	const struct session_zones *zones;
	const struct summary *run; /* of the recording that this is an interval of */
};

void summary_make(const struct session_stats *stats, const struct prof *prof, struct summary *out);

/* Returns the lost share of the samples in Lua, in millionths; 0 if there were none. */
uint64_t summary_lost_ppm(const struct summary *s);

/* True if the kernel counted BPF's run time: it does so for CAP_SYS_ADMIN only. */
bool summary_knows_cost(const struct summary *s);

/* Human text, a few lines. written: the files that were written, or NULL. */
void summary_print(const struct summary *s, const char *written, FILE *to);

/* Samples with functions that the profile had no room for; nothing when n is 0. */
void summary_print_other(uint64_t n, FILE *to);

/* Warns if too many lines of compiled code are those of a guard; in outputs that show no lines, too many functions. */
void summary_print_lines(const struct prof *prof, bool lines, FILE *to);

/* For a recording with zones: VMs that have no zone stack, samples whose zone is not known. module:
 * where it was searched; NULL: in each family's own. */
void summary_print_zones(const struct summary *s, const char *module, FILE *to);

/* For -v: how samples ended in the kernel, before their names were looked up. */
void summary_print_ends(const struct summary *s, FILE *to);

/* One JSON object; its members are described in docs/stats.md. 0 or -ENOMEM. */
int summary_json(const struct summary *s, FILE *to);

#endif

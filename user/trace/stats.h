/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds up actions: time, calls and hits of each function and line.
 *
 * "self" is time while it is on top, "total" while it is anywhere on the stacks of the coroutine that
 * runs and of its resumers: once, however often it is there (recursion). A suspended coroutine is not
 * on these stacks. The time of C functions is their own, and that of the line that called them;
 * a call's own time, until the first line of the function called, is that line's, too.
 */
#ifndef TRACE_STATS_H
#define TRACE_STATS_H

#include "action.h"
#include "base/cleanup.h"
#include "figures.h"

struct program;
struct stats;

/* The ids of functions are the program's, which outlives the stats; it counts hits of lines for which there is no room. -ENOMEM. */
int stats_new(struct program *program, struct stats **out);
void stats_free(struct stats **stats);

#define __stats __cleanup(stats_free)

/* The put() of a trace_sink; ctx is a struct stats. */
int stats_put(void *stats, const struct trace_action *action);

/* Ends all frames: the totals are complete then. */
void stats_finish(struct stats *stats);

/* Function `id`; TRACE_NO_FUNCTION: all calls of unknown ones. NULL: it has neither a call, a line nor
 * time: a fork's child goes on in functions that its parent called. */
const struct stats_function *stats_function(const struct stats *stats, uint32_t id);

/* Ids are less than this. */
uint32_t stats_nfunctions(const struct stats *stats);

/* Adds the figures to those of its program. -ENOMEM. */
int stats_merge(const struct stats *stats);

#endif

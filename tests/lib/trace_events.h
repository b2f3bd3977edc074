/* SPDX-License-Identifier: BSD-2-Clause */
/* Synthetic events of a debug hook, of a program with a few functions, and the figures they add up to. */
#ifndef LIB_TRACE_EVENTS_H
#define LIB_TRACE_EVENTS_H

#include <stdio.h>

#include "trace/align.h"
#include "trace/event.h"
#include "trace/program.h"
#include "trace/raw_write.h"
#include "trace/stats.h"

/* The functions, and their ids in `program`. */
enum { FN_MAIN, FN_F, FN_G, FN_PCALL, FN_RESUME, FN_YIELD, FN_ERROR, FN_TOSTRING, FN_NUMBER };

struct trace_events {
	struct program *program;
	struct align *align;
	struct stats *stats;
	struct raw_file *file; /* the trace, in `text` */
	struct raw_writer *raw;
	FILE *stream;
	char *text;
	size_t len;
	uint64_t now; /* of the next event: its own time is added to it */
	unsigned thread;
};

void trace_events_open(struct trace_events *e, enum trace_dialect dialect);
void trace_events_close(struct trace_events *e);

/* Each of them occurs `ns` after the one before. */
void ev_call(struct trace_events *e, uint64_t ns, unsigned frame, unsigned caller, unsigned fn);
void ev_tail_call(struct trace_events *e, uint64_t ns, unsigned frame, unsigned fn);
void ev_line(struct trace_events *e, uint64_t ns, unsigned frame, int line);
void ev_return(struct trace_events *e, uint64_t ns, unsigned frame);

/* Of a function; all zero if it was not called. */
struct stats_function ev_function(const struct trace_events *e, unsigned fn);
struct stats_line ev_figures(const struct trace_events *e, unsigned fn, int line);

/* Fills a program with these functions, in x.lua. */
void trace_events_program(struct program *p);

/* Any bytes as events. */
int trace_events_any(struct trace_events *e, const uint8_t *data, size_t size);

/* Ends the trace file. Aborts unless reading it gives the hits and calls of all Lua functions. */
void trace_events_check_file(struct trace_events *e);

#endif

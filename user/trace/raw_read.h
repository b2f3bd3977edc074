/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a trace file, of luatrace or of raw_write.h, as actions. Any bytes are accepted. */
#ifndef TRACE_RAW_READ_H
#define TRACE_RAW_READ_H

#include <stdio.h>

#include "program.h"

struct raw_counts {
	uint64_t records;
	uint64_t bad; /* lines that are no record, or do not fit the stack */
	bool is_ours; /* luabpf wrote it */
	bool ended;   /* its last line is the one that luabpf writes last */
};

/* Lua states of a file beyond this: their records are bad. */
#define RAW_STATES_MAX 4096

/* Sets the sink of the actions of a state's records: once for each, before the first. -errno. */
typedef int (*raw_sink_fn)(void *ctx, struct trace_sink *out);

/*
 * Functions go into `program`, whose ids the actions have. 0, an error of a sink, -ENOMEM, -EBADMSG:
 * a line is longer than any record, or the error of a read.
 */
int raw_read(FILE *from, struct program *program, raw_sink_fn sink_of, void *ctx,
	     struct raw_counts *counts);

#endif

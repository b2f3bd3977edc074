/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes actions as Chrome trace events, for Perfetto and chrome://tracing: a complete event ("X") for
 * each call, a part for each time that its coroutine ran. Threads are OS threads.
 */
#ifndef TRACE_CHROME_H
#define TRACE_CHROME_H

#include <stdio.h>

#include "base/cleanup.h"
#include "program.h"

/* A file of several processes' events. */
void chrome_begin(FILE *to);
void chrome_end(FILE *to);

struct chrome;

/* `program` and `to` outlive it. -ENOMEM. */
int chrome_new(FILE *to, const struct program *program, uint32_t pid, uint32_t tid,
	       struct chrome **out);
void chrome_free(struct chrome **chrome);

#define __chrome __cleanup(chrome_free)

/* The put() of a trace_sink; ctx is a struct chrome. Errors of writes stay in the stream. */
int chrome_put(void *chrome, const struct trace_action *action);

/* Ends the frames that are open. */
void chrome_finish(struct chrome *chrome);

#endif

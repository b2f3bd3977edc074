/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's actions, as align.h and raw_read.h compute them: a stack of coroutines, of which each
 * resumed the next one, and on each a stack of frames. A sink may rely on that: an action pops and
 * yields nothing that is not there.
 */
#ifndef TRACE_ACTION_H
#define TRACE_ACTION_H

#include <stdint.h>

enum trace_action_kind {
	TRACE_CALL,	 /* arg: function */
	TRACE_TAIL_CALL, /* arg: function; in place of the topmost frame */
	TRACE_RETURN,	 /* of the topmost frame */
	TRACE_UNWIND,	 /* arg: number of frames of the topmost coroutine that an error removed */
	TRACE_LINE,	 /* arg: line, in the topmost frame of all coroutines on the stack */
	TRACE_RESUME,	 /* arg: coroutine: it comes on top with its frames. The first one, too */
	TRACE_FRAME, /* arg: function; as CALL, but the call is another process's, which forked */
	TRACE_YIELD, /* the topmost coroutine goes with its frames; without frames, it has ended */
};

struct trace_action {
	uint64_t time_ns; /* never less than the one before */
	uint32_t kind;
	uint32_t arg;
};

struct trace_sink {
	/* 0 or -ENOMEM. */
	int (*put)(void *ctx, const struct trace_action *action);
	void *ctx;
};

/* Coroutines have numbers below this, and may get that of one which has ended. */
#define TRACE_THREADS 65536

/* Function ids are below this; TRACE_NO_FUNCTION (event.h) is one that is unknown. */
#define TRACE_FUNCTIONS (1u << 20)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes actions from the events of one OS thread's hooks: a shadow stack for each coroutine, which
 * is aligned to the frame that an event names. Frames that are gone without a return event were
 * unwound by an error (LuaJIT: a C function may as well have returned). An event of another
 * coroutine than the last one's is a resume, or, if that one waits on the stack of resumers, a yield.
 *
 * Bounded: coroutines and frames. The oldest suspended coroutine is dropped beyond that, and counted.
 */
#ifndef TRACE_ALIGN_H
#define TRACE_ALIGN_H

#include <stdbool.h>

#include "action.h"
#include "base/cleanup.h"
#include "event.h"

/* A function's effect on the stacks that no event shows. */
enum trace_role {
	TRACE_ROLE_LUA,
	TRACE_ROLE_C,	    /* any other C function */
	TRACE_ROLE_PROTECT, /* pcall, xpcall, coroutine.resume: an error ends there */
	TRACE_ROLE_YIELD,   /* coroutine.yield */
	TRACE_ROLE_ERROR,   /* error: it does not return */
};

/* Returns the role of a function's id. */
struct trace_roles {
	enum trace_role (*of)(void *ctx, uint32_t function);
	void *ctx;
};

enum trace_dialect { TRACE_LUA51, TRACE_LUA52_ON, TRACE_LUAJIT };

struct align_losses {
	uint64_t frames;     /* calls that were not followed: the stacks are full */
	uint64_t coroutines; /* dropped with their frames */
	uint64_t misaligned; /* events in frames that were not known */
};

struct align;

/* Roles and sink must outlive it. -ENOMEM. */
int align_new(enum trace_dialect dialect, const struct trace_roles *roles,
	      const struct trace_sink *sink, struct align **out);
void align_free(struct align **align);

#define __align __cleanup(align_free)

/* 0, or the -errno of the sink, or -ENOMEM. Any event is accepted. */
int align_event(struct align *align, const struct trace_event *event);

/* Puts what waited for another event. As align_event(). */
int align_finish(struct align *align);

void align_losses(const struct align *align, struct align_losses *out);

#endif

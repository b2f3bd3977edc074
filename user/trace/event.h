/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One event of a debug hook, as align.h takes it.
 *
 * Lua reports calls, tail calls, returns and lines. It reports no error that unwinds frames, no
 * resume and no yield. So each event has the coroutine and the identity of its topmost frame.
 * Identities are compared for equality only, among the live frames of a coroutine.
 *
 *     5.1      an index; the caller's is one less
 *     5.2-5.5  the CallInfo's address; the caller's is not known
 *     LuaJIT   the offset of the frame in the stack. The frame of a vararg function moves after its
 *              call event. C functions have no return events, so calls need their caller's frame.
 */
#ifndef TRACE_EVENT_H
#define TRACE_EVENT_H

#include <stdint.h>

enum trace_event_kind {
	TRACE_EVENT_CALL,      /* 5.1, LuaJIT: a tail call, too */
	TRACE_EVENT_TAIL_CALL, /* 5.2 and later */
	TRACE_EVENT_RETURN,    /* LuaJIT: of Lua functions only. 5.1: not for its tail returns */
	TRACE_EVENT_LINE,
	TRACE_EVENT_FRAME, /* as CALL: the call was made, and is counted, in another process */
	TRACE_EVENT_KINDS
};

#define TRACE_NO_FUNCTION UINT32_MAX

struct trace_event {
	uint64_t time_ns;
	uint64_t thread;   /* the coroutine: its lua_State */
	uint64_t frame;	   /* of the function that is called, returns, or runs */
	uint64_t caller;   /* 5.1, LuaJIT, calls: the frame below; 0: none, it is the first one */
	uint32_t function; /* id in the table of functions; lines, returns: may be NO_FUNCTION */
	int32_t line;	   /* of TRACE_EVENT_LINE */
	uint8_t kind;
};

#endif

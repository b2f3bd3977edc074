// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "align.h"
#include "base/array.h"
#include "base/hash.h"
#include "costacks.h"

#define FRAMES_MAX (4u << 20) /* of all coroutines */
#define CHAIN_MAX 256	      /* Lua nests at most 200 resumes */
#define NOT_FOUND SIZE_MAX

struct align_frame {
	uint64_t id;
	uint64_t called_as; /* the id at its call; LuaJIT moves the frames of vararg functions */
	uint32_t function;
	uint8_t role;
	bool had_line;
};

#define HINTS 64 /* a power of two */

struct align_thread {
	UT_hash_handle hh; /* in the order of their first events */
	uint64_t key;
	uint32_t number;
	bool on_chain;
	struct costack stack;  /* of struct align_frame */
	uint32_t hints[HINTS]; /* index + 1 of the last frame of an id with this hash */
};

struct align {
	enum trace_dialect dialect;
	struct trace_roles roles;
	struct trace_sink sink;
	struct align_thread *threads;
	struct align_thread *chain[CHAIN_MAX]; /* each resumed the next one */
	size_t nchain;
	uint64_t now;
	size_t nframes;
	uint32_t *free_numbers; /* of ended coroutines; there is room for all */
	uint32_t nfree, next_number;
	enum trace_action_kind call; /* of the current event: CALL or FRAME */
	struct trace_action held;    /* 5.1: the call before, which may be a tail call */
	bool holds;
	struct align_losses losses;
};

int align_new(enum trace_dialect dialect, const struct trace_roles *roles,
	      const struct trace_sink *sink, struct align **out)
{
	struct align *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->dialect = dialect;
	a->roles = *roles;
	a->sink = *sink;
	*out = a;
	return 0;
}

static void thread_free(struct align *a, struct align_thread *t)
{
	HASH_DEL(a->threads, t);
	a->free_numbers[a->nfree++] = t->number;
	a->nframes -= t->stack.n;
	free(t->stack.frames);
	free(t);
}

void align_free(struct align **align)
{
	struct align_thread *t, *next;

	if (!*align)
		return;
	HASH_ITER (hh, (*align)->threads, t, next)
		thread_free(*align, t);
	free((*align)->free_numbers);
	free(*align);
	*align = NULL;
}

static struct align_frame *frames_of(const struct align_thread *t)
{
	return t->stack.frames;
}

static int put(struct align *a, enum trace_action_kind kind, uint32_t arg)
{
	const struct trace_action action = {.time_ns = a->now, .kind = kind, .arg = arg};

	return a->sink.put(a->sink.ctx, &action);
}

static struct align_thread *current(const struct align *a)
{
	return a->nchain ? a->chain[a->nchain - 1] : NULL;
}

static struct align_frame *top_of(const struct align_thread *t)
{
	return t->stack.n ? &frames_of(t)[t->stack.n - 1] : NULL;
}

static bool is_lua(const struct align_frame *frame)
{
	return frame->role == TRACE_ROLE_LUA;
}

static void drop_frames(struct align *a, struct align_thread *t, size_t n)
{
	t->stack.n -= n;
	a->nframes -= n;
}

/*
 * Removes the frames of the topmost coroutine from index `keep` on, which are gone without a return
 * event. In LuaJIT the C functions below the lowest Lua function among them may have returned.
 */
static int remove_frames(struct align *a, struct align_thread *t, size_t keep)
{
	size_t unwound = keep;
	int ret = 0;

	if (a->dialect == TRACE_LUAJIT)
		while (unwound < t->stack.n && !is_lua(&frames_of(t)[unwound]))
			unwound++;
	if (unwound < t->stack.n) {
		ret = put(a, TRACE_UNWIND, t->stack.n - unwound);
		drop_frames(a, t, t->stack.n - unwound);
	}
	while (!ret && t->stack.n > keep) {
		ret = put(a, TRACE_RETURN, 0);
		drop_frames(a, t, 1);
	}
	return ret;
}

/* True if the coroutine has been left by a yield, as far as its topmost function shows it. */
static bool has_yielded(const struct align_thread *t)
{
	return t->stack.n && top_of(t)->role == TRACE_ROLE_YIELD;
}

/*
 * The topmost coroutine is left. A Lua function that is on top cannot have yielded: an error has
 * ended the coroutine.
 */
static int leave(struct align *a)
{
	struct align_thread *t = current(a);
	int ret = 0;

	if (t->stack.n && (is_lua(top_of(t)) || top_of(t)->role == TRACE_ROLE_ERROR)) {
		ret = put(a, TRACE_UNWIND, t->stack.n);
		drop_frames(a, t, t->stack.n);
	}
	if (!ret)
		ret = put(a, TRACE_YIELD, 0);
	a->nchain--;
	t->on_chain = false;
	if (!t->stack.n)
		thread_free(a, t);
	return ret;
}

static int enter(struct align *a, struct align_thread *t)
{
	int ret = 0;

	while (!ret && a->nchain && (has_yielded(current(a)) || a->nchain == CHAIN_MAX))
		ret = leave(a);
	a->chain[a->nchain++] = t;
	t->on_chain = true;
	return ret ? ret : put(a, TRACE_RESUME, t->number);
}

/* Drops the coroutine that has been known for longest, unless it runs or has resumed another one. */
static int drop_oldest(struct align *a)
{
	struct align_thread *t = a->threads;
	int ret;

	while (t && t->on_chain)
		t = t->hh.next;
	if (!t)
		return -ENOSPC;
	a->losses.coroutines++;
	ret = put(a, TRACE_RESUME, t->number);
	if (!ret)
		ret = put(a, TRACE_UNWIND, t->stack.n);
	if (!ret)
		ret = put(a, TRACE_YIELD, 0);
	thread_free(a, t);
	return ret;
}

static int thread_of(struct align *a, uint64_t key, struct align_thread **out)
{
	struct align_thread *t;
	int ret = 0;

	HASH_FIND(hh, a->threads, &key, sizeof(key), t);
	if (t) {
		*out = t;
		return 0;
	}
	if (!a->nfree && a->next_number == TRACE_THREADS)
		ret = drop_oldest(a);
	if (ret)
		return ret;
	if (!a->nfree && array_grow(&a->free_numbers, a->next_number, sizeof(*a->free_numbers)))
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->key = key;
	HASH_ADD(hh, a->threads, key, sizeof(key), t);
	if (!t->hh.tbl) {
		free(t);
		return -ENOMEM;
	}
	t->number = a->nfree ? a->free_numbers[--a->nfree] : a->next_number++;
	*out = t;
	return 0;
}

/* Makes this coroutine the topmost one. */
static int switch_to(struct align *a, uint64_t key)
{
	struct align_thread *t;
	int ret = thread_of(a, key, &t);

	if (!ret && !t->on_chain)
		return enter(a, t);
	while (!ret && current(a) != t)
		ret = leave(a);
	return ret;
}

static size_t find_frame(const struct align_thread *t, uint64_t id)
{
	for (size_t i = t->stack.n; i > 0; i--)
		if (frames_of(t)[i - 1].id == id)
			return i - 1;
	return NOT_FOUND;
}

static uint32_t *hint_of(struct align_thread *t, uint64_t id)
{
	return &t->hints[(id >> 4 ^ id >> 10 ^ id >> 16) & (HINTS - 1)];
}

static int push_frame(struct align *a, struct align_thread *t, uint64_t id, uint32_t function)
{
	int ret = a->nframes < FRAMES_MAX ? 0 : drop_oldest(a);
	struct align_frame *frame;

	if (ret == -ENOSPC) {
		a->losses.frames++;
		return 0;
	}
	if (ret)
		return ret;
	frame = costack_push(&t->stack, sizeof(*frame));
	if (!frame)
		return -ENOMEM;
	*frame = (struct align_frame){
		.id = id,
		.called_as = id,
		.function = function,
		.role = a->roles.of(a->roles.ctx, function),
	};
	*hint_of(t, id) = t->stack.n;
	a->nframes++;
	if (a->dialect != TRACE_LUA51 || a->call != TRACE_CALL || !is_lua(frame) ||
	    t->stack.n < 2 || !is_lua(frame - 1))
		return put(a, a->call, function);
	a->held = (struct trace_action){.time_ns = a->now, .kind = a->call, .arg = function};
	a->holds = true;
	return 0;
}

int align_finish(struct align *a)
{
	if (!a->holds)
		return 0;
	a->holds = false;
	return a->sink.put(a->sink.ctx, &a->held);
}

/*
 * 5.1 calls the hook before it moves the frame of a tail-called Lua function to its caller's place.
 * The function's first line follows, there: then the call was one.
 */
static int release_call(struct align *a, const struct trace_event *ev)
{
	struct align_thread *t = current(a);
	struct align_frame *top = a->holds ? top_of(t) : NULL;

	if (top && t->key == ev->thread && ev->kind == TRACE_EVENT_LINE &&
	    ev->frame == top[-1].id) {
		a->held.kind = TRACE_TAIL_CALL;
		top->id = ev->frame;
		top[-1] = *top;
		drop_frames(a, t, 1);
	}
	return align_finish(a);
}

static int replace_frame(struct align *a, struct align_frame *top, uint64_t id, uint32_t function)
{
	*top = (struct align_frame){
		.id = id,
		.called_as = id,
		.function = function,
		.role = a->roles.of(a->roles.ctx, function),
	};
	return put(a, TRACE_TAIL_CALL, function);
}

/*
 * LuaJIT has no events for tail calls: a call whose caller is not the topmost frame, and that gets
 * the place of the Lua function there, is one.
 */
static bool is_tail_call(const struct align_thread *t, size_t below, const struct trace_event *ev)
{
	if (below + 1 >= t->stack.n)
		return false;
	if (!is_lua(&frames_of(t)[below + 1]) || frames_of(t)[below + 1].called_as != ev->frame)
		return false;
	for (size_t i = below + 2; i < t->stack.n; i++)
		if (is_lua(&frames_of(t)[i]))
			return false;
	return true;
}

/*
 * 5.2 and later: C code that caught an error calls anew. The frame gets the CallInfo of one that was
 * unwound. A hint that another frame has overwritten is missed: the next event of the caller aligns.
 */
static int on_call_52(struct align *a, struct align_thread *t, const struct trace_event *ev)
{
	size_t at = *hint_of(t, ev->frame) - 1UL;
	int ret = 0;

	if (at < t->stack.n && frames_of(t)[at].id == ev->frame)
		ret = remove_frames(a, t, at);
	return ret ? ret : push_frame(a, t, ev->frame, ev->function);
}

static int on_call(struct align *a, struct align_thread *t, const struct trace_event *ev)
{
	size_t caller = find_frame(t, ev->caller); /* NOT_FOUND + 1 is 0 */
	int ret;

	if (caller == NOT_FOUND && ev->caller)
		a->losses.misaligned++;
	if (a->dialect == TRACE_LUAJIT && is_tail_call(t, caller, ev)) {
		ret = remove_frames(a, t, caller + 2);
		return ret ? ret : replace_frame(a, top_of(t), ev->frame, ev->function);
	}
	ret = remove_frames(a, t, caller + 1);
	return ret ? ret : push_frame(a, t, ev->frame, ev->function);
}

/*
 * Makes the frame of an event the topmost one. False: it is not known, and no frame is left.
 */
static int align_to(struct align *a, struct align_thread *t, const struct trace_event *ev,
		    bool *found)
{
	struct align_frame *top = top_of(t);
	size_t at;

	*found = true;
	if (top && top->id == ev->frame)
		return 0;
	at = find_frame(t, ev->frame);
	if (at == NOT_FOUND && a->dialect == TRACE_LUAJIT && top && is_lua(top) && !top->had_line) {
		top->id = ev->frame;
		return 0;
	}
	*found = at != NOT_FOUND;
	if (!*found)
		a->losses.misaligned++;
	return remove_frames(a, t, at + 1);
}

/* The frame is the topmost one. 5.2 and 5.3 give another identity, which no later event has. */
static int on_tail_call(struct align *a, struct align_thread *t, const struct trace_event *ev)
{
	struct align_frame *top = top_of(t);

	if (top && is_lua(top))
		return replace_frame(a, top, top->id, ev->function);
	a->losses.misaligned++;
	return push_frame(a, t, ev->frame, ev->function);
}

static int on_line(struct align *a, struct align_thread *t, const struct trace_event *ev)
{
	bool found;
	int ret = align_to(a, t, ev, &found);

	if (!ret && !found)
		ret = push_frame(a, t, ev->frame, ev->function);
	if (ret || !t->stack.n)
		return ret;
	top_of(t)->had_line = true;
	return put(a, TRACE_LINE, ev->line > 0 ? ev->line : 0);
}

static int on_return(struct align *a, struct align_thread *t, const struct trace_event *ev)
{
	bool found;
	int ret = align_to(a, t, ev, &found);

	if (ret || !found)
		return ret;
	drop_frames(a, t, 1);
	return put(a, TRACE_RETURN, 0);
}

int align_event(struct align *a, const struct trace_event *ev)
{
	struct align_thread *t = current(a);
	int ret = release_call(a, ev);

	if (ev->time_ns > a->now)
		a->now = ev->time_ns;
	a->call = ev->kind == TRACE_EVENT_FRAME ? TRACE_FRAME : TRACE_CALL;
	if (!ret && (!t || t->key != ev->thread))
		ret = switch_to(a, ev->thread);
	if (ret)
		return ret;
	t = current(a);
	switch (ev->kind) {
	case TRACE_EVENT_CALL:
	case TRACE_EVENT_FRAME:
		return a->dialect == TRACE_LUA52_ON ? on_call_52(a, t, ev) : on_call(a, t, ev);
	case TRACE_EVENT_TAIL_CALL:
		return on_tail_call(a, t, ev);
	case TRACE_EVENT_RETURN:
		return on_return(a, t, ev);
	case TRACE_EVENT_LINE:
		return on_line(a, t, ev);
	}
	return 0;
}

void align_losses(const struct align *align, struct align_losses *out)
{
	*out = align->losses;
}

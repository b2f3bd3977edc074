// SPDX-License-Identifier: BSD-2-Clause
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "jit.h"

/* A program may make traces without end: the cache is emptied when it has this many. LuaJIT has
 * 1000 at a time by default (maxtrace). */
#define KNOWN_MAX 4000

/* Attempts to read a trace that the target changes meanwhile. Each takes milliseconds, so there is
 * not one for each sample. */
#define TRIES_MAX 8

struct known_trace {
	struct {
		uint64_t g;
		uint32_t traceno;
		uint32_t fp;
	} key;
	struct lj_trace *trace; /* NULL: it could not be read, or followed */
	int remaining;		/* attempts */
	UT_hash_handle hh;
};

struct lj_traces {
	const struct lb_mem *mem;
	struct known_trace *known;
	void (*saw)(void *arg, uint64_t proto, uint32_t fp);
	void *arg;
};

static void forget(struct lj_traces *traces)
{
	struct known_trace *k, *tmp;

	HASH_ITER (hh, traces->known, k, tmp) {
		HASH_DEL(traces->known, k);
		lj_trace_free(&k->trace);
		free(k);
	}
}

int lj_traces_new(const struct lb_mem *mem, struct lj_traces **out)
{
	struct lj_traces *traces = calloc(1, sizeof(*traces));

	if (!traces)
		return -ENOMEM;
	traces->mem = mem;
	*out = traces;
	return 0;
}

void lj_traces_watch(struct lj_traces *traces, void (*saw)(void *arg, uint64_t proto, uint32_t fp),
		     void *arg)
{
	traces->saw = saw;
	traces->arg = arg;
}

void lj_traces_free(struct lj_traces **traces)
{
	if (!*traces)
		return;
	forget(*traces);
	free(*traces);
	*traces = NULL;
}

static struct known_trace *find(struct lj_traces *traces, const struct lb_rec_sample *rec)
{
	struct known_trace *k, probe = {};

	probe.key.g = rec->vm;
	probe.key.traceno = rec->traceno;
	probe.key.fp = rec->trace_fp;
	HASH_FIND(hh, traces->known, &probe.key, sizeof(probe.key), k);
	if (k)
		return k;
	if (HASH_COUNT(traces->known) >= KNOWN_MAX)
		forget(traces);
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->key = probe.key;
	k->remaining = TRIES_MAX;
	HASH_ADD(hh, traces->known, key, sizeof(k->key), k);
	if (k->hh.tbl)
		return k;
	free(k);
	return NULL;
}

/* Looks up a sample's trace. -ENOENT: it cannot be read or followed, or its number was reused. */
static int known_of(struct lj_traces *traces, const struct lj_build *build,
		    const struct lj_ffnames *names, const struct lb_rec_sample *rec,
		    const struct lj_trace **out)
{
	const struct lj_trace_wanted wanted = {
		.no = rec->traceno, .fp = rec->trace_fp, .saw = traces->saw, .arg = traces->arg};
	struct known_trace *k = find(traces, rec);
	int r;

	if (!k)
		return -ENOMEM;
	if (k->remaining) {
		r = lj_trace_read_wanted(traces->mem, &build->lj, rec->vm, &wanted, names,
					 &k->trace);
		if (r == -ENOMEM)
			return r;
		k->remaining = r && r != -EBADMSG && r != -ESTALE ? k->remaining - 1 : 0;
	}
	*out = k->trace;
	return k->trace ? 0 : -ENOENT;
}

static uint8_t kind_of(const struct lj_trace_frame *f)
{
	return f->fast ? LB_FRAME_FF : LB_FRAME_LUA;
}

/* True if the sample's topmost frames are the snapshot's. */
static bool stands_on(const struct lb_rec_sample *rec, const struct lj_trace_frame *snap_frames,
		      uint32_t n)
{
	uint32_t i;

	if (rec->stack.n < n)
		return false;
	for (i = 0; i < n; i++) {
		const struct lb_frame *f = &rec->stack.frame[i];

		if (snap_frames[i].is_c) {
			if (LB_FRAME_KIND(f) != LB_FRAME_FF && LB_FRAME_KIND(f) != LB_FRAME_C)
				return false;
			continue;
		}
		if (LB_FRAME_KIND(f) != kind_of(&snap_frames[i]) ||
		    LB_FRAME_PTR(f) != snap_frames[i].proto || f->fp != snap_frames[i].fp ||
		    f->pc != snap_frames[i].pc)
			return false;
	}
	return true;
}

/* True if a frame is this function's, without a position. */
static bool is_without_pc(const struct lb_frame *f, const struct lj_trace_frame *function)
{
	return LB_FRAME_KIND(f) == kind_of(function) && LB_FRAME_PTR(f) == function->proto &&
	       f->fp == function->fp && f->pc == LB_NO_PC;
}

/* True if frame i of a sample is this function's. */
static bool is_function(const struct lb_rec_sample *rec, uint32_t i,
			const struct lj_trace_frame *function)
{
	return i < rec->stack.n && LB_FRAME_KIND(&rec->stack.frame[i]) == kind_of(function) &&
	       LB_FRAME_PTR(&rec->stack.frame[i]) == function->proto;
}

/*
 * Adds the lower frame that a trace returns to, if jit_base is that frame's already: then the sample has the function that
 * stood on it in its place, and not the frame itself. old: the sample's frames that the n exact ones replace. Returns how
 * many exact ones there are.
 */
static uint32_t add_lower(const struct lb_rec_sample *rec, uint32_t old,
			  struct lj_trace_frame exact[LJ_TRACE_FRAMES], uint32_t n,
			  const struct lj_trace_frame *lower)
{
	if (n < LJ_TRACE_FRAMES && exact[n - 1].proto != lower->proto &&
	    !is_function(rec, old, lower))
		exact[n++] = *lower;
	return n;
}

/* Replaces the topmost `old` frames of a stack by n others. */
static void put_frames(struct lb_stack *stack, uint32_t old, const struct lj_trace_frame *frames,
		       uint32_t n)
{
	uint8_t top = LB_FRAME_FLAGS(&stack->frame[0]) & LB_FRAME_THREAD;
	uint8_t low = LB_FRAME_FLAGS(&stack->frame[old - 1]) & (uint8_t)~LB_FRAME_THREAD;
	uint32_t i;

	if (stack->n - old + n > LB_MAX_FRAMES) {
		stack->n = LB_MAX_FRAMES - n + old;
		stack->flags |= LB_SAMPLE_CUT;
	}
	memmove(&stack->frame[n], &stack->frame[old], (stack->n - old) * sizeof(stack->frame[0]));
	stack->n += n - old;
	for (i = 0; i < n; i++) {
		/* a tail call is not marked, as in the interpreter */
		uint8_t flags = i + 1 == n ? low : LB_FRAME_TRACE;

		stack->frame[i] = (struct lb_frame){
			.word = LB_FRAME_WORD(kind_of(&frames[i]), flags | (i ? 0 : top),
					      frames[i].proto),
			.pc = frames[i].pc,
			.fp = frames[i].fp,
		};
	}
}

int lj_traces_attribute(struct lj_traces *traces, const struct lj_build *build,
			const struct lj_ffnames *names, struct lb_rec_sample *rec)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES],
		returning;
	struct lb_stack *stack = &rec->stack;
	const struct lj_trace *trace;
	uint32_t n, nsnap_frames;
	int r;

	if (!build->lj.ir)
		return -ENOENT;
	r = known_of(traces, build, names, rec, &trace);
	if (r)
		return r;
	r = lj_trace_frames(trace, rec->mcofs, exact_frames, snap_frames, &nsnap_frames);
	if (r < 0)
		return r;
	n = (uint32_t)r;
	if (!stands_on(rec, snap_frames, nsnap_frames)) {
		/* After a return to a lower frame (RETF) and before the next snapshot, jit_base is
		 * already that frame's. The sample then has the snapshot's function in its slot, or
		 * that frame itself, without a position. */
		const struct lj_trace_frame *lower = &snap_frames[nsnap_frames - 1];

		if (!lower->returned)
			return -ENOENT;
		if (n < nsnap_frames && stands_on(rec, snap_frames, nsnap_frames - 1))
			nsnap_frames--;
		else if (is_without_pc(&stack->frame[0], lower))
			nsnap_frames = 1;
		else
			return -ENOENT;
		n = add_lower(rec, nsnap_frames, exact_frames, n, lower);
	}
	if (!lj_trace_returning(trace, rec->mcofs, &returning))
		n = add_lower(rec, nsnap_frames, exact_frames, n, &returning);
	put_frames(stack, nsnap_frames, exact_frames, n);
	return 0;
}

/* True if the sample's stack has the trace's frames on top of those on which it began, and nothing else. */
static bool are_plain(const struct lj_trace_frame *frames, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (frames[i].is_c || frames[i].returned)
			return false;
	return true;
}

int lj_traces_elsewhere(struct lj_traces *traces, const struct lb_rec_sample *rec, uint32_t mcofs,
			struct lb_rec_sample *snapshot, struct lb_rec_sample *exact)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	const struct known_trace *k = find(traces, rec);
	uint32_t n_here, n_snap;
	int n;

	if (!k || !k->trace)
		return -ENOENT;
	n = lj_trace_frames(k->trace, rec->mcofs, exact_frames, snap_frames, &n_here);
	if (n < 0 || !stands_on(rec, snap_frames, n_here) || !are_plain(snap_frames, n_here))
		return -ENOENT;
	n = lj_trace_frames(k->trace, mcofs, exact_frames, snap_frames, &n_snap);
	if (n < 0 || !are_plain(snap_frames, n_snap) || !are_plain(exact_frames, (uint32_t)n))
		return -ENOENT;
	memcpy(snapshot, rec, LB_SAMPLE_SIZE(rec->stack.n));
	memcpy(exact, rec, LB_SAMPLE_SIZE(rec->stack.n));
	snapshot->mcofs = exact->mcofs = mcofs;
	put_frames(&snapshot->stack, n_here, snap_frames, n_snap);
	put_frames(&exact->stack, n_here, exact_frames, (uint32_t)n);
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
/* Looks up a machine-code offset (layer 5): the exact frames, and the snapshot's. Binary search in
 * the line table t->mc_entries; then both chains of frames, LJ_TRACE_FRAMES at most. */
#include <errno.h>
#include <stdbool.h>

#include "jit.h"
#include "model.h"

/* Returns the last snapshot at or before a machine-code offset, as the unwinder does. By guards, that of the next one;
 * of the guard that ends the loop the first. */
static const struct lj_tsnap *snapshot_of(const struct lj_trace *t, uint32_t mcofs)
{
	uint32_t i = 0;

	while (i + 1 < t->nsnap && t->snap[i + 1].mcofs <= mcofs)
		i++;
	if (t->by_guards && t->loop_exit && t->snap[i].pc == t->loop_exit)
		i = 0;
	return &t->snap[i];
}

/* A chain of reported frames, innermost first, and the index of each in t->frames. */
struct chain {
	struct lj_trace_frame *out;
	int frame[LJ_TRACE_FRAMES];
	uint32_t n;
};

/* Fills in the chain from this frame down; if on_c, a C function's frame is above it. n is 0: too many frames. */
static void follow(const struct lj_trace *t, int frame, uint32_t pc, bool on_c, struct chain *c)
{
	uint32_t n = 0;

	if (on_c) {
		c->frame[n] = frame;
		c->out[n++] = (struct lj_trace_frame){.is_c = true};
	}
	for (; frame >= 0 && n < LJ_TRACE_FRAMES; n++) {
		const struct lj_tframe *f = &t->frames[frame];

		c->frame[n] = frame;
		c->out[n] = (struct lj_trace_frame){
			.proto = t->codes[f->code].proto,
			.fp = t->codes[f->code].fp,
			.returned = f->returned,
			.pc = pc,
		};
		if (f->via_pcall && ++n < LJ_TRACE_FRAMES) {
			c->frame[n] = frame;
			c->out[n] = (struct lj_trace_frame){
				.proto = f->via_pcall,
				.fast = true,
				.pc = f->via_pcall,
			};
		}
		pc = f->callpc;
		frame = f->parent;
	}
	c->n = frame < 0 && n <= LJ_TRACE_FRAMES ? n : 0;
}

/* True if this is the lowest frame that the trace knows here. Below it is the trace's caller. A
 * return to that is guarded (RETF), and its frame is added after this one. */
static bool is_lowest(const struct lj_trace *t, int frame)
{
	int parent = t->frames[frame].parent;

	return parent < 0 || (t->frames[parent].returned && parent > frame);
}

/* Returns the first of the frames that tail calls replaced by this one. */
static int before_tail_calls(const struct lj_trace *t, int frame)
{
	while (t->frames[frame].tail_called_by)
		frame = t->frames[frame].tail_called_by - 1;
	return frame;
}

/* True if the chain contains this frame as a lowest one. Cuts it off below. */
static bool ends_at(const struct lj_trace *t, struct chain *c, int first)
{
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		int frame = c->frame[i];

		if (!is_lowest(t, frame) || before_tail_calls(t, frame) != first)
			continue;
		while (i + 1 < c->n && c->frame[i + 1] == frame)
			i++;
		c->n = i + 1;
		return true;
	}
	return false;
}

int lj_trace_frames(const struct lj_trace *t, uint32_t mcofs,
		    struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES],
		    struct lj_trace_frame snap_frames[LJ_TRACE_FRAMES], uint32_t *nsnap_frames)
{
	const struct lj_tsnap *s = snapshot_of(t, mcofs);
	struct chain here = {.out = exact_frames}, below = {.out = snap_frames};
	uint32_t lo = 0, hi = t->nmc_entries, pc = s->callpc, i;
	int32_t step;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (t->mc_entries[mid].mcofs <= mcofs)
			lo = mid + 1;
		else
			hi = mid;
	}
	step = lo ? t->mc_entries[lo - 1].step : -1;
	if (step < 0 || step >= (int32_t)t->nhistory || t->history[step].ambiguous ||
	    s->frame < 0 || (!s->on_c && lj_trace_code(t, s->pc, &pc) < 0))
		return -ENOENT;
	follow(t, s->frame, pc, s->on_c, &below);
	follow(t, (int)t->history[step].frame, t->history[step].pc, false, &here);
	/* the lowest frame is common to both */
	for (i = 0; i < below.n; i++) {
		int first = before_tail_calls(t, below.frame[i]);

		if (is_lowest(t, below.frame[i]) && ends_at(t, &here, first) &&
		    ends_at(t, &below, first)) {
			*nsnap_frames = below.n;
			return (int)here.n;
		}
	}
	return -ENOENT;
}

/* Returns the frame of the instruction that machine code was made from; -1: it is not known. */
static int frame_of(const struct lj_trace *t, const struct lj_mc_entry *e)
{
	bool known = e->step >= 0 && e->step < (int32_t)t->nhistory;

	return known ? (int)t->history[e->step].frame : -1;
}

/* Bytes of machine code between the store to jit_base and what runs in the lower frame, at most. */
#define RETF_BYTES 16

int lj_trace_returning(const struct lj_trace *t, uint32_t mcofs, struct lj_trace_frame *lower)
{
	uint32_t i = 0;
	int frame, parent;

	while (i < t->nmc_entries && t->mc_entries[i].mcofs <= mcofs)
		i++;
	frame = i ? frame_of(t, &t->mc_entries[i - 1]) : -1;
	parent = frame < 0 ? -1 : t->frames[frame].parent;
	if (parent < 0 || !is_lowest(t, frame))
		return -ENOENT;
	for (; i < t->nmc_entries && t->mc_entries[i].mcofs <= mcofs + RETF_BYTES; i++) {
		if (frame_of(t, &t->mc_entries[i]) != parent)
			continue;
		*lower = (struct lj_trace_frame){
			.proto = t->codes[t->frames[parent].code].proto,
			.fp = t->codes[t->frames[parent].code].fp,
			.returned = true,
			.pc = t->frames[frame].callpc,
		};
		return 0;
	}
	return -ENOENT;
}

uint32_t lj_trace_recorded(const struct lj_trace *t)
{
	return t->nhistory;
}

struct lj_trace_frame lj_trace_recorded_at(const struct lj_trace *t, uint32_t i)
{
	const struct bc_event *event = &t->history[i];
	const struct lj_tframe *frame = &t->frames[event->frame];
	const struct lj_code *code = &t->codes[frame->code];

	return (struct lj_trace_frame){
		.proto = code->proto,
		.fp = code->fp,
		.returned = frame->returned,
		.pc = event->pc,
	};
}

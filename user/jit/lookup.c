// SPDX-License-Identifier: BSD-2-Clause
/* On which frames a place in a trace's machine code stands. */
#include <errno.h>
#include <stdbool.h>

#include "jit.h"
#include "model.h"

/* The rightmost snapshot at or left of a place in the machine code, as the walk takes it. */
static const struct lj_tsnap *snapshot_of(const struct lj_trace *t, uint32_t mcofs)
{
	uint32_t i = 0;

	while (i + 1 < t->nsnap && t->snap[i + 1].mcofs <= mcofs)
		i++;
	return &t->snap[i];
}

/* Frames from one down, as they are told, and which of the trace's each is. */
struct chain {
	struct lj_trace_frame *out;
	int frame[LJ_TRACE_FRAMES];
	uint32_t n;
};

/* From this frame down. n is 0: too many, or one is not Lua's. */
static void follow(const struct lj_trace *t, int frame, uint32_t pc, struct chain *c)
{
	uint32_t n = 0;

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

/*
 * Is this frame the lowest that the trace is sure of while it runs? What lies below it is whatever
 * called the trace, until that is returned to: then the trace checks what it is (RETF), and the
 * frame there is added after this one.
 */
static bool is_lowest(const struct lj_trace *t, int frame)
{
	int parent = t->frames[frame].parent;

	return parent < 0 || (t->frames[parent].returned && parent > frame);
}

/* The first of the frames that had a frame's place, one after the other, by tail calls. */
static int place_of(const struct lj_trace *t, int frame)
{
	while (t->frames[frame].tail_called_by)
		frame = t->frames[frame].tail_called_by - 1;
	return frame;
}

/* Does the chain go down to this place? Cuts it off below. */
static bool ends_at(const struct lj_trace *t, struct chain *c, int place)
{
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		int frame = c->frame[i];

		if (!is_lowest(t, frame) || place_of(t, frame) != place)
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
	uint32_t lo = 0, hi = t->nplaces, pc, i;
	int32_t step;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (t->places[mid].mcofs <= mcofs)
			lo = mid + 1;
		else
			hi = mid;
	}
	step = lo ? t->places[lo - 1].step : -1;
	if (step < 0 || step >= (int32_t)t->nhistory || t->history[step].ambiguous ||
	    s->frame < 0 || lj_trace_code(t, s->pc, &pc) < 0)
		return -ENOENT;
	follow(t, s->frame, pc, &below);
	follow(t, (int)t->history[step].frame, t->history[step].pc, &here);
	/* both stand on the same frame at last */
	for (i = 0; i < below.n; i++) {
		int place = place_of(t, below.frame[i]);

		if (is_lowest(t, below.frame[i]) && ends_at(t, &here, place) &&
		    ends_at(t, &below, place)) {
			*nsnap_frames = below.n;
			return (int)here.n;
		}
	}
	return -ENOENT;
}

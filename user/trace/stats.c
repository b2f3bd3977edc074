// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "costacks.h"
#include "event.h"
#include "lines.h"
#include "program.h"
#include "stats.h"

#define NO_LINE INT32_MIN

struct stats_frame {
	uint32_t fn;	 /* index: id + 1 */
	int32_t line;	 /* its current one; NO_LINE */
	uint32_t for_fn; /* the line that its time belongs to: a C function's is the caller's */
	int32_t for_line;
};

struct stats {
	struct program *program;
	struct stats_function *fns; /* by id + 1 */
	uint32_t nfns, cap;
	struct costacks stacks; /* of struct stats_frame */
	uint64_t now;
	struct stats_lines *sources; /* by the program's number */
	uint32_t nsources;
};

int stats_new(struct program *program, struct stats **out)
{
	struct stats *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->program = program;
	s->stacks.frame_size = sizeof(struct stats_frame);
	*out = s;
	return 0;
}

void stats_free(struct stats **stats)
{
	struct stats *s = *stats;

	if (!s)
		return;
	for (uint32_t i = 0; i < s->nfns; i++)
		free(s->fns[i].lines.at);
	for (uint32_t i = 0; i < s->nsources; i++)
		free(s->sources[i].at);
	costacks_free(&s->stacks);
	free(s->fns);
	free(s->sources);
	free(s);
	*stats = NULL;
}

/* TRACE_NO_FUNCTION has index 0. */
static int fn_index(struct stats *s, uint32_t id, uint32_t *out)
{
	uint32_t at = id == TRACE_NO_FUNCTION || id >= TRACE_FUNCTIONS ? 0 : id + 1;

	if (at >= s->cap) {
		uint32_t cap = s->cap ? s->cap : 64;
		struct stats_function *grown;

		while (cap <= at)
			cap *= 2;
		grown = reallocarray(s->fns, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + s->cap, 0, (cap - s->cap) * sizeof(*grown));
		s->fns = grown;
		s->cap = cap;
	}
	if (at >= s->nfns)
		s->nfns = at + 1;
	*out = at;
	return 0;
}

static struct stats_line *line_of(const struct stats *s, uint32_t fn, int32_t line)
{
	return line == NO_LINE ? NULL : stats_line(&s->fns[fn].lines, line);
}

static uint32_t source_of(const struct stats *s, uint32_t fn)
{
	const struct program *p = s->program;

	return fn && fn - 1 < p->nfunctions ? p->functions[fn - 1].source : UINT32_MAX;
}

static int grow_source(struct stats *s, uint32_t source, struct line_range to)
{
	struct stats_lines *lines;

	while (s->nsources <= source) {
		if (array_grow(&s->sources, s->nsources, sizeof(*s->sources)))
			return -ENOMEM;
		s->sources[s->nsources++] = (struct stats_lines){};
	}
	lines = &s->sources[source];
	return lines_grow(lines, lines_reach(lines, to.first, to.end - 1),
			  &s->program->state_lines_left);
}

/* A source has all lines that its functions have: those that begin there also end there. */
static int add_line(struct stats *s, uint32_t fn, int32_t line)
{
	struct stats_function *f = &s->fns[fn];
	struct line_range to = lines_reach(&f->lines, line, line);
	int ret = 0;

	if (!f->lines.at)
		f->source = source_of(s, fn);
	if (f->source != UINT32_MAX)
		ret = grow_source(s, f->source, to);
	return ret ? ret : lines_grow(&f->lines, to, &s->program->state_lines_left);
}

static void active_begin(struct stats *s, struct stats_line *line)
{
	if (line->active++ == 0)
		line->since_ns = s->now;
}

static void active_end(struct stats *s, struct stats_line *line)
{
	if (--line->active == 0)
		line->total_ns += s->now - line->since_ns;
}

/* The frame's line, among those of its source. */
static struct stats_line *shared_line(const struct stats *s, const struct stats_frame *frame)
{
	uint32_t source = s->fns[frame->fn].source;

	return source == UINT32_MAX ? NULL : stats_line(&s->sources[source], frame->line);
}

static void line_begin(struct stats *s, const struct stats_frame *frame)
{
	struct stats_line *line = line_of(s, frame->fn, frame->line), *shared;

	if (!line)
		return;
	active_begin(s, line);
	shared = line->active == 1 ? shared_line(s, frame) : NULL;
	if (shared)
		active_begin(s, shared);
}

static void line_end(struct stats *s, const struct stats_frame *frame)
{
	struct stats_line *line = line_of(s, frame->fn, frame->line), *shared;

	if (!line)
		return;
	active_end(s, line);
	shared = line->active ? NULL : shared_line(s, frame);
	if (shared)
		active_end(s, shared);
}

/* A frame comes onto the stacks of those that run, or leaves them. */
static void frame_begin(struct stats *s, const struct stats_frame *frame)
{
	struct stats_function *fn = &s->fns[frame->fn];

	if (fn->active++ == 0)
		fn->since_ns = s->now;
	line_begin(s, frame);
}

static void frame_end(struct stats *s, const struct stats_frame *frame)
{
	struct stats_function *fn = &s->fns[frame->fn];

	line_end(s, frame);
	if (--fn->active == 0)
		fn->total_ns += s->now - fn->since_ns;
}

static void charge(struct stats *s, uint64_t ns)
{
	struct stats_frame *top = costacks_frame(&s->stacks, 0);
	struct stats_line *line;

	if (!top || !ns)
		return;
	s->fns[top->fn].self_ns += ns;
	line = line_of(s, top->for_fn, top->for_line);
	if (line)
		line->self_ns += ns;
}

/* The caller's line gets the frame's time until it has a line of its own. */
/* counts: false: another process has counted it. */
static int on_call(struct stats *s, uint32_t id, bool counts)
{
	struct stats_frame *frame, caller = {.for_line = NO_LINE};
	uint32_t fn;
	int ret = fn_index(s, id, &fn);

	if (ret)
		return ret;
	frame = costacks_frame(&s->stacks, 0);
	if (frame)
		caller = *frame;
	frame = costack_push(costacks_current(&s->stacks), sizeof(*frame));
	if (!frame)
		return -ENOMEM;
	*frame = (struct stats_frame){
		.fn = fn,
		.line = NO_LINE,
		.for_fn = caller.for_fn,
		.for_line = caller.for_line,
	};
	s->fns[fn].calls += counts;
	frame_begin(s, frame);
	return 0;
}

static void pop(struct stats *s, size_t n)
{
	struct costack *t = costacks_current(&s->stacks);

	while (n--)
		frame_end(s, (struct stats_frame *)t->frames + --t->n);
}

static int on_line(struct stats *s, int32_t number)
{
	struct stats_frame *top = costacks_frame(&s->stacks, 0);

	if (!line_of(s, top->fn, number)) {
		int ret = add_line(s, top->fn, number);

		if (ret == -ENOSPC)
			s->program->lost_hits++;
		if (ret)
			return ret == -ENOSPC ? 0 : ret;
	}
	if (top->line != number) {
		line_end(s, top);
		top->line = number;
		line_begin(s, top);
	}
	top->for_fn = top->fn;
	top->for_line = number;
	line_of(s, top->fn, number)->hits++;
	return 0;
}

static int on_resume(struct stats *s, uint32_t number)
{
	int ret = costacks_resume(&s->stacks, number);
	const struct costack *t = costacks_current(&s->stacks);

	for (size_t i = 0; !ret && i < t->n; i++)
		frame_begin(s, (struct stats_frame *)t->frames + i);
	return ret;
}

static void on_yield(struct stats *s)
{
	const struct costack *t = costacks_current(&s->stacks);

	for (size_t i = t->n; i > 0; i--)
		frame_end(s, (struct stats_frame *)t->frames + i - 1);
	costacks_yield(&s->stacks);
}

int stats_put(void *stats, const struct trace_action *action)
{
	struct stats *s = stats;

	charge(s, action->time_ns - s->now);
	s->now = action->time_ns;
	switch (action->kind) {
	case TRACE_CALL:
		return on_call(s, action->arg, true);
	case TRACE_FRAME:
		return on_call(s, action->arg, false);
	case TRACE_TAIL_CALL:
		pop(s, 1);
		return on_call(s, action->arg, true);
	case TRACE_RETURN:
		pop(s, 1);
		return 0;
	case TRACE_UNWIND:
		pop(s, action->arg);
		return 0;
	case TRACE_LINE:
		return on_line(s, action->arg);
	case TRACE_RESUME:
		return on_resume(s, action->arg);
	case TRACE_YIELD:
		on_yield(s);
		return 0;
	}
	return 0;
}

void stats_finish(struct stats *stats)
{
	while (stats->stacks.nchain)
		on_yield(stats);
}

const struct stats_function *stats_function(const struct stats *stats, uint32_t id)
{
	uint32_t at = id + 1; /* TRACE_NO_FUNCTION: 0 */

	const struct stats_function *f = at < stats->nfns ? &stats->fns[at] : NULL;

	return f && (f->calls || f->total_ns || f->lines.at) ? f : NULL;
}

uint32_t stats_nfunctions(const struct stats *stats)
{
	return stats->nfns ? stats->nfns - 1 : 0;
}

int stats_merge(const struct stats *s)
{
	struct program *program = s->program;
	int ret = 0;

	for (uint32_t id = 0; !ret && id < stats_nfunctions(s) && id < program->nfunctions; id++) {
		const struct stats_function *from = stats_function(s, id);

		if (from)
			ret = program_add(program, id, from);
	}
	for (uint32_t i = 0; !ret && i < s->nsources && i < program->nsources; i++)
		ret = program_add_totals(program, i, &s->sources[i]);
	return ret;
}

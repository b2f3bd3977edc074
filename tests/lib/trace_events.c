// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "trace/raw_read.h"
#include "trace_events.h"

static const struct {
	const char *name;
	int32_t first, last;
	enum trace_role role;
} functions[FN_NUMBER] = {
	[FN_MAIN] = {"", 0, 0, TRACE_ROLE_LUA},
	[FN_F] = {"f", 10, 19, TRACE_ROLE_LUA},
	[FN_G] = {"g", 20, 29, TRACE_ROLE_LUA},
	[FN_PCALL] = {"pcall", 0, 0, TRACE_ROLE_PROTECT},
	[FN_RESUME] = {"coroutine.resume", 0, 0, TRACE_ROLE_PROTECT},
	[FN_YIELD] = {"coroutine.yield", 0, 0, TRACE_ROLE_YIELD},
	[FN_ERROR] = {"error", 0, 0, TRACE_ROLE_ERROR},
	[FN_TOSTRING] = {"tostring", 0, 0, TRACE_ROLE_C},
};

static enum trace_role role_of(void *ctx, uint32_t function)
{
	(void)ctx;
	return function < FN_NUMBER ? functions[function].role : TRACE_ROLE_LUA;
}

static int put(void *ctx, const struct trace_action *action)
{
	struct trace_events *e = ctx;
	int ret = stats_put(e->stats, action);

	return ret ? ret : raw_writer_put(e->raw, action);
}

void trace_events_program(struct program *p)
{
	for (uint32_t i = 0; i < FN_NUMBER; i++) {
		struct program_function f = {
			.first = functions[i].first,
			.last = functions[i].last,
			.role = functions[i].role,
			.name = (char *)functions[i].name,
			.source = UINT32_MAX,
		};
		uint32_t id;

		if (f.role == TRACE_ROLE_LUA && program_source(p, "@x.lua", 6, &f.source))
			abort();
		if (program_function(p, &f, &id) || id != i)
			abort();
	}
}

void trace_events_open(struct trace_events *e, enum trace_dialect dialect)
{
	const struct trace_roles roles = {.of = role_of};
	const struct trace_sink sink = {.put = put, .ctx = e};

	*e = (struct trace_events){.now = 1000000};
	if (program_new(&e->program) || stats_new(e->program, &e->stats) ||
	    align_new(dialect, &roles, &sink, &e->align))
		abort();
	trace_events_program(e->program);
	e->stream = open_memstream(&e->text, &e->len);
	if (!e->stream || raw_file_new(e->stream, e->program, &e->file) ||
	    raw_writer_new(e->file, &e->raw))
		abort();
}

void trace_events_close(struct trace_events *e)
{
	raw_writer_free(&e->raw);
	raw_file_free(&e->file);
	fclose(e->stream);
	free(e->text);
	align_free(&e->align);
	stats_free(&e->stats);
	program_free(&e->program);
}

static void put_event(struct trace_events *e, uint64_t ns, struct trace_event event)
{
	e->now += ns;
	event.time_ns = e->now;
	event.thread = 0x1000 + e->thread;
	if (align_event(e->align, &event))
		abort();
}

void ev_call(struct trace_events *e, uint64_t ns, unsigned frame, unsigned caller, unsigned fn)
{
	put_event(e, ns,
		  (struct trace_event){.kind = TRACE_EVENT_CALL,
				       .frame = frame,
				       .caller = caller,
				       .function = fn});
}

void ev_tail_call(struct trace_events *e, uint64_t ns, unsigned frame, unsigned fn)
{
	put_event(e, ns,
		  (struct trace_event){
			  .kind = TRACE_EVENT_TAIL_CALL, .frame = frame, .function = fn});
}

void ev_line(struct trace_events *e, uint64_t ns, unsigned frame, int line)
{
	put_event(e, ns,
		  (struct trace_event){.kind = TRACE_EVENT_LINE,
				       .frame = frame,
				       .function = TRACE_NO_FUNCTION,
				       .line = line});
}

void ev_return(struct trace_events *e, uint64_t ns, unsigned frame)
{
	put_event(e, ns,
		  (struct trace_event){.kind = TRACE_EVENT_RETURN,
				       .frame = frame,
				       .function = TRACE_NO_FUNCTION});
}

struct stats_function ev_function(const struct trace_events *e, unsigned fn)
{
	const struct stats_function *f = stats_function(e->stats, fn);

	return f ? *f : (struct stats_function){};
}

struct stats_line ev_figures(const struct trace_events *e, unsigned fn, int line)
{
	const struct stats_function f = ev_function(e, fn);
	const struct stats_line *l = stats_line(&f.lines, line);

	return l ? *l : (struct stats_line){};
}

int trace_events_any(struct trace_events *e, const uint8_t *data, size_t size)
{
	int ret = 0;

	for (; !ret && size >= 6; data += 6, size -= 6) {
		struct trace_event event = {
			.time_ns = e->now += data[5],
			.thread = data[1],
			.frame = data[2],
			.caller = data[3],
			.function = data[4] > 250 ? TRACE_NO_FUNCTION : data[4] % (2 * FN_NUMBER),
			.line = data[4] << (data[5] & 8),
			.kind = data[0] % (TRACE_EVENT_KINDS + 1),
		};

		ret = align_event(e->align, &event);
	}
	return ret ? ret : align_finish(e->align);
}

static int sink_of(void *stats, struct trace_sink *out)
{
	*out = (struct trace_sink){.put = stats_put, .ctx = stats};
	return 0;
}

static const struct stats_function *read_function(const struct program *p, const struct stats *s,
						  unsigned fn)
{
	for (uint32_t i = 0; i < p->nfunctions; i++)
		if (p->functions[i].first == functions[fn].first &&
		    p->functions[i].last == functions[fn].last)
			return stats_function(s, i);
	return NULL;
}

/* NULL: it has neither a call nor time; a file has the time in microseconds. */
static bool is_same(const struct stats_function *a, const struct stats_function *b)
{
	if ((a ? a->calls : 0) != (b ? b->calls : 0))
		return false;
	for (uint32_t i = 0; a && i < a->lines.n; i++) {
		const struct stats_line *l =
			b ? stats_line(&b->lines, (int64_t)a->lines.first + i) : NULL;
		uint64_t hits = l ? l->hits : 0;

		if (a->lines.at[i].hits != hits)
			return false;
	}
	return true;
}

void trace_events_check_file(struct trace_events *e)
{
	struct raw_counts counts = {};
	struct program *program;
	struct stats *stats;
	FILE *in;

	raw_writer_finish(e->raw);
	if (raw_file_finish(e->file) || fflush(e->stream))
		abort();
	in = fmemopen(e->text, e->len ? e->len : 1, "r");
	if (!in || program_new(&program) || stats_new(program, &stats) ||
	    raw_read(in, program, sink_of, stats, &counts) || (e->len && counts.bad))
		abort();
	for (unsigned fn = FN_MAIN; fn <= FN_G; fn++)
		if (!is_same(stats_function(e->stats, fn), read_function(program, stats, fn)) ||
		    !is_same(read_function(program, stats, fn), stats_function(e->stats, fn)))
			abort();
	fclose(in);
	stats_free(&stats);
	program_free(&program);
}

// SPDX-License-Identifier: BSD-2-Clause
/* Stacks and figures out of the events of a debug hook. Times are in ns, exact. */
#include <criterion/criterion.h>

#include "trace_events.h"

TestSuite(trace);

static void assert_function(const struct trace_events *e, unsigned fn, uint64_t calls,
			    uint64_t self, uint64_t total)
{
	struct stats_function f = ev_function(e, fn);

	cr_assert(f.calls == calls && f.self_ns == self && f.total_ns == total,
		  "function %u: calls %lu self %lu total %lu, not %lu %lu %lu", fn, f.calls,
		  f.self_ns, f.total_ns, calls, self, total);
}

static void assert_line(const struct trace_events *e, unsigned fn, int line, uint64_t hits,
			uint64_t self, uint64_t total)
{
	struct stats_line l = ev_figures(e, fn, line);

	cr_assert(l.hits == hits && l.self_ns == self && l.total_ns == total,
		  "line %d: hits %lu self %lu total %lu, not %lu %lu %lu", line, l.hits, l.self_ns,
		  l.total_ns, hits, self, total);
}

static uint64_t misaligned(const struct trace_events *e)
{
	struct align_losses losses;

	align_losses(e->align, &losses);
	return losses.misaligned;
}

/* Every dialect: main calls f on line 1 and tostring on line 2. */
Test(trace, adds_up_lines_and_functions)
{
	for (int dialect = TRACE_LUA51; dialect <= TRACE_LUAJIT; dialect++) {
		struct trace_events e;

		trace_events_open(&e, dialect);
		ev_call(&e, 0, 1, 0, FN_MAIN);
		ev_line(&e, 5, 1, 1);
		ev_call(&e, 10, 2, 1, FN_F);
		ev_line(&e, 3, 2, 11);
		ev_line(&e, 20, 2, 12);
		ev_return(&e, 30, 2);
		ev_line(&e, 7, 1, 2);
		ev_call(&e, 1, 2, 1, FN_TOSTRING);
		if (dialect != TRACE_LUAJIT)
			ev_return(&e, 40, 2);
		else
			e.now += 40;
		ev_line(&e, 2, 1, 3);
		ev_return(&e, 50, 1);
		stats_finish(e.stats);
		assert_function(&e, FN_MAIN, 1,
				5 + 10 + 7 + 1 + 50 + (dialect == TRACE_LUAJIT ? 0 : 2), 168);
		assert_function(&e, FN_F, 1, 53, 53);
		assert_function(&e, FN_TOSTRING, 1, dialect == TRACE_LUAJIT ? 42 : 40,
				dialect == TRACE_LUAJIT ? 42 : 40);
		assert_line(&e, FN_MAIN, 1, 1, 10 + 3 + 7, 70); /* with f's entry */
		assert_line(&e, FN_F, 11, 1, 20, 20);
		assert_line(&e, FN_F, 12, 1, 30, 30);
		assert_line(&e, FN_MAIN, 2, 1, 43, 43); /* with the C function */
		assert_line(&e, FN_MAIN, 3, 1, 50, 50);
		cr_assert_eq(misaligned(&e), 0);
		trace_events_check_file(&e);
		trace_events_close(&e);
	}
}

Test(trace, counts_recursion_once_in_totals)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUA52_ON);
	ev_call(&e, 0, 1, 0, FN_F);
	ev_line(&e, 0, 1, 11);
	ev_call(&e, 10, 2, 0, FN_F);
	ev_line(&e, 0, 2, 11);
	ev_call(&e, 10, 3, 0, FN_F);
	ev_line(&e, 0, 3, 12);
	ev_return(&e, 10, 3);
	ev_return(&e, 10, 2);
	ev_return(&e, 10, 1);
	assert_function(&e, FN_F, 3, 50, 50);
	assert_line(&e, FN_F, 11, 2, 40, 50);
	assert_line(&e, FN_F, 12, 1, 10, 10);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* f ends by `return g()`: g's return is one to main. 5.1 calls the hook before the frame moves. */
Test(trace, a_tail_call_replaces_the_frame)
{
	for (int dialect = TRACE_LUA51; dialect <= TRACE_LUAJIT; dialect++) {
		struct trace_events e;

		trace_events_open(&e, dialect);
		ev_call(&e, 0, 1, 0, FN_MAIN);
		ev_line(&e, 0, 1, 1);
		ev_call(&e, 1, 2, 1, FN_F);
		ev_line(&e, 0, 2, 11);
		if (dialect == TRACE_LUA52_ON)
			ev_tail_call(&e, 10, 2, FN_G);
		else if (dialect == TRACE_LUA51)
			ev_call(&e, 10, 3, 2, FN_G);
		else
			ev_call(&e, 10, 2, 1, FN_G);
		ev_line(&e, 0, 2, 21);
		ev_return(&e, 20, 2);
		ev_line(&e, 4, 1, 2);
		assert_function(&e, FN_F, 1, 10, 10);
		assert_function(&e, FN_G, 1, 20, 20);
		assert_line(&e, FN_MAIN, 1, 1, 5, 35);
		cr_assert_eq(misaligned(&e), 0);
		trace_events_check_file(&e);
		trace_events_close(&e);
	}
}

/* pcall(f): f calls g, which fails. Nothing of f and g returns. */
Test(trace, an_error_removes_frames)
{
	for (int dialect = TRACE_LUA51; dialect <= TRACE_LUAJIT; dialect++) {
		struct trace_events e;

		trace_events_open(&e, dialect);
		ev_call(&e, 0, 1, 0, FN_MAIN);
		ev_line(&e, 0, 1, 1);
		ev_call(&e, 1, 2, 1, FN_PCALL);
		ev_call(&e, 2, 3, 2, FN_F);
		ev_line(&e, 0, 3, 11);
		ev_call(&e, 3, 4, 3, FN_G);
		ev_line(&e, 0, 4, 21);
		ev_call(&e, 4, 5, 4, FN_ERROR);
		if (dialect != TRACE_LUAJIT)
			ev_return(&e, 5, 2);
		ev_line(&e, 6, 1, 2);
		ev_call(&e, 7, 2, 1, FN_F);
		ev_return(&e, 8, 2);
		assert_function(&e, FN_PCALL, 1, 2, dialect == TRACE_LUAJIT ? 15 : 14);
		assert_function(&e, FN_F, 2, 11, dialect == TRACE_LUAJIT ? 21 : 20);
		assert_function(&e, FN_MAIN, 1, dialect == TRACE_LUAJIT ? 8 : 14, 0);
		assert_line(&e, FN_MAIN, 2, 1, 15, 0);
		cr_assert_eq(misaligned(&e), 0);
		stats_finish(e.stats);
		assert_function(&e, FN_MAIN, 1, dialect == TRACE_LUAJIT ? 8 : 14,
				dialect == TRACE_LUAJIT ? 31 : 36);
		trace_events_check_file(&e);
		trace_events_close(&e);
	}
}

/* C code catches an error and calls again: 5.2 and later have no event between. */
Test(trace, a_frame_that_is_called_again_was_removed)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUA52_ON);
	ev_call(&e, 0, 100, 0, FN_TOSTRING);
	for (int i = 0; i < 3; i++) {
		ev_call(&e, 1, 200, 0, FN_F);
		ev_call(&e, 10, 300, 0, FN_G);
	}
	ev_return(&e, 10, 100);
	assert_function(&e, FN_TOSTRING, 1, 1, 43);
	assert_function(&e, FN_F, 3, 30, 42);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* LuaJIT: `local a, b = tostring(1), g()`. tostring has returned before g is called. */
Test(trace, c_functions_of_luajit_return_without_an_event)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUAJIT);
	ev_call(&e, 0, 1, 0, FN_MAIN);
	ev_line(&e, 0, 1, 1);
	ev_call(&e, 1, 5, 1, FN_TOSTRING);
	ev_call(&e, 10, 6, 1, FN_G);
	ev_line(&e, 0, 6, 21);
	ev_return(&e, 20, 6);
	ev_line(&e, 2, 1, 2);
	assert_function(&e, FN_TOSTRING, 1, 10, 10);
	assert_function(&e, FN_G, 1, 20, 20);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* LuaJIT: a vararg function's frame moves between its call and its first line. */
Test(trace, a_vararg_frame_of_luajit_moves)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUAJIT);
	ev_call(&e, 0, 1, 0, FN_MAIN);
	ev_line(&e, 0, 1, 1);
	ev_call(&e, 1, 5, 1, FN_F);
	ev_line(&e, 0, 9, 11);
	ev_call(&e, 2, 12, 9, FN_G);
	ev_return(&e, 3, 12);
	ev_call(&e, 4, 5, 1, FN_G); /* a tail call of f: at the frame's first place */
	ev_return(&e, 5, 5);
	ev_line(&e, 0, 1, 2);
	assert_function(&e, FN_F, 1, 6, 9);
	assert_function(&e, FN_G, 2, 8, 8);
	cr_assert_eq(misaligned(&e), 0);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* main resumes f on thread 1 twice; it yields once, and returns. */
Test(trace, a_coroutine_runs_on_top_of_its_resumer)
{
	for (int dialect = TRACE_LUA51; dialect <= TRACE_LUAJIT; dialect++) {
		bool c_returns = dialect != TRACE_LUAJIT;
		struct trace_events e;

		trace_events_open(&e, dialect);
		ev_call(&e, 0, 1, 0, FN_MAIN);
		ev_line(&e, 0, 1, 1);
		ev_call(&e, 1, 2, 1, FN_RESUME);
		e.thread = 1;
		ev_call(&e, 2, 1, 0, FN_F);
		ev_line(&e, 0, 1, 11);
		ev_call(&e, 10, 2, 1, FN_YIELD);
		e.thread = 0;
		if (c_returns)
			ev_return(&e, 0, 2);
		ev_line(&e, 0, 1, 2);
		ev_call(&e, 1000, 2, 1, FN_RESUME);
		e.thread = 1;
		if (c_returns)
			ev_return(&e, 0, 2);
		ev_line(&e, 0, 1, 12);
		ev_return(&e, 20, 1);
		e.thread = 0;
		if (c_returns)
			ev_return(&e, 0, 2);
		ev_line(&e, 0, 1, 3);
		assert_function(&e, FN_F, 1, 30, 30);
		assert_function(&e, FN_RESUME, 2, 2, 32);
		assert_line(&e, FN_MAIN, 1, 1, 1 + 2, 13);
		assert_line(&e, FN_MAIN, 2, 1, 1000, 1020);
		cr_assert_eq(misaligned(&e), 0);
		trace_events_check_file(&e);
		trace_events_close(&e);
	}
}

/* A scheduler in C resumes another coroutine when one has yielded. */
Test(trace, a_coroutine_that_has_yielded_resumes_none)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUA52_ON);
	for (int i = 0; i < 100; i++) {
		e.thread = i % 2;
		if (i < 2)
			ev_call(&e, 0, 1, 0, i ? FN_G : FN_F);
		else
			ev_return(&e, 0, 2); /* of the yield */
		ev_line(&e, 0, 1, 11);
		ev_call(&e, 10, 2, 0, FN_YIELD);
	}
	assert_function(&e, FN_F, 1, 500, 500);
	e.thread = 0;
	ev_return(&e, 0, 2);
	assert_function(&e, FN_G, 1, 500, 500);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* An error ends a coroutine: it is not on the stacks any more, and its number is free. */
Test(trace, an_error_ends_a_coroutine)
{
	const unsigned n = TRACE_THREADS + 1000;
	struct trace_events e;
	struct align_losses losses;

	trace_events_open(&e, TRACE_LUA52_ON);
	ev_call(&e, 0, 1, 0, FN_MAIN);
	for (unsigned i = 0; i < n; i++) {
		e.thread = 0;
		ev_call(&e, 0, 2, 0, FN_RESUME);
		e.thread = 1 + i;
		ev_call(&e, 0, 1, 0, FN_F);
		ev_line(&e, 1, 1, 11);
		e.thread = 0;
		ev_return(&e, 1, 2);
	}
	align_losses(e.align, &losses);
	cr_assert_eq(losses.coroutines, 0);
	assert_function(&e, FN_F, n, 2 * n, 2 * n);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* Coroutines that are never resumed again: the oldest ones are dropped, and counted. */
Test(trace, coroutines_are_bounded)
{
	struct trace_events e;
	struct align_losses losses;

	trace_events_open(&e, TRACE_LUA52_ON);
	ev_call(&e, 0, 1, 0, FN_MAIN);
	for (unsigned i = 0; i < TRACE_THREADS + 1000; i++) {
		e.thread = 0;
		ev_call(&e, 0, 2, 0, FN_RESUME);
		e.thread = 1 + i;
		ev_call(&e, 0, 1, 0, FN_F);
		ev_call(&e, 1, 2, 0, FN_YIELD);
		e.thread = 0;
		ev_return(&e, 1, 2);
	}
	align_losses(e.align, &losses);
	cr_assert_eq(losses.coroutines, 1001);
	assert_function(&e, FN_F, TRACE_THREADS + 1000, TRACE_THREADS + 1000,
			2 * (TRACE_THREADS + 1000));
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* Lines far apart: too many are counted, not stored. */
Test(trace, lines_are_bounded)
{
	struct trace_events e;

	trace_events_open(&e, TRACE_LUA52_ON);
	ev_call(&e, 0, 1, 0, FN_F);
	ev_line(&e, 0, 1, 11);
	ev_line(&e, 1, 1, 0x7ffffff0);
	ev_line(&e, 1, 1, 11);
	cr_assert_eq(e.program->lost_hits, 1);
	assert_line(&e, FN_F, 11, 2, 2, 0);
	trace_events_check_file(&e);
	trace_events_close(&e);
}

/* Whatever the events, actions fit the stacks: the sanitizers judge. */
Test(trace, any_events_are_accepted)
{
	for (unsigned seed = 1; seed < 60; seed++) {
		struct trace_events e;
		uint8_t bytes[6 * 400];
		unsigned state = seed;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			state = state * 1664525U + 1013904223U;
			bytes[i] = (state >> 24) % (seed % 2 ? 256 : 7);
		}
		trace_events_open(&e, seed % 3);
		cr_assert_eq(trace_events_any(&e, bytes, sizeof(bytes)), 0);
		stats_finish(e.stats);
		trace_events_check_file(&e);
		trace_events_close(&e);
	}
}

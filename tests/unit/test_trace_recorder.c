// SPDX-License-Identifier: BSD-2-Clause
/* The hook's own time is not the program's: events of a state, with times that are known. */
#include <string.h>

#include <criterion/criterion.h>

#include "hook/state.h"
#include "trace/recorder.h"

TestSuite(trace_recorder);

enum { OWN = 1, MAIN, FUNCTIONS };
enum { LINE_COST = 30, CALL_COST = 40 };

static char bytes[] = HOOK_OWN_SOURCE "@x.lua";
static struct hook_func functions[FUNCTIONS] = {
	[OWN] = {.kind = HOOK_MAIN, .source = {0, sizeof(HOOK_OWN_SOURCE) - 1}},
	[MAIN] = {.kind = HOOK_MAIN, .source = {sizeof(HOOK_OWN_SOURCE) - 1, 6}},
};

static struct hook_event events[256];
static size_t nevents;
static uint64_t now;

/* ns after the one before. */
static void event(uint64_t ns, enum hook_event_kind kind, uint64_t frame, uint32_t value)
{
	now += ns;
	events[nevents++] = (struct hook_event){
		.time = now,
		.thread = 1,
		.frame = frame,
		.func = kind == HOOK_EV_CALL ? value : 0,
		.kind_and_line = (uint32_t)kind << 24 | (kind == HOOK_EV_LINE ? value : 0),
	};
}

Test(trace_recorder, the_hooks_own_time_is_subtracted)
{
	struct hook_state state = {
		.header = {.vm = 504},
		.funcs = functions,
		.nfuncs = FUNCTIONS,
		.bytes = bytes,
		.nbytes = sizeof(bytes),
	};
	const struct recorder_options options = {};
	const struct program_function *main;
	const struct stats_line *lines;
	struct recorder *r;

	event(1000, HOOK_EV_CALL, 0x100, OWN);
	for (int i = 0; i < 20; i++) {
		event(i ? LINE_COST : CALL_COST, HOOK_EV_LINE, 0x100, 4);
		event(LINE_COST + (i == 7) * 5000, HOOK_EV_LINE, 0x100, 5); /* an outlier */
	}
	event(LINE_COST, HOOK_EV_RETURN, 0x100, 0);
	event(500, HOOK_EV_CALL, 0x100, MAIN);
	event(CALL_COST + 1, HOOK_EV_LINE, 0x100, 1);
	event(LINE_COST + 100, HOOK_EV_LINE, 0x100, 2);
	event(LINE_COST - 5, HOOK_EV_LINE, 0x100, 3); /* never below zero */
	event(LINE_COST + 7 + 9000, HOOK_EV_WAITED, 9000 + LINE_COST, 0);
	event(200, HOOK_EV_LINE, 0x100, 4);
	event(LINE_COST + 50, HOOK_EV_RETURN, 0x100, 0);

	cr_assert_eq(recorder_new(&options, &r), 0);
	/* a few at a time, as they are read */
	for (size_t i = 0; i < nevents; i += 7)
		cr_assert_eq(
			recorder_events(r, &state, events + i, nevents - i < 7 ? nevents - i : 7),
			0);
	cr_assert_eq(recorder_finish(r), 0);
	cr_assert_eq(recorder_program(r)->nfunctions, 1);
	main = &recorder_program(r)->functions[0];
	lines = main->stats.lines.at - main->stats.lines.first;
	cr_assert_eq(main->stats.calls, 1);
	cr_assert_eq(lines[1].self_ns, 100);
	cr_assert_eq(lines[2].self_ns, 0);
	cr_assert_eq(lines[3].self_ns, 7 + 200);
	cr_assert_eq(lines[4].self_ns, 50);
	cr_assert_eq(main->stats.self_ns, 1 + 100 + 207 + 50);
	cr_assert_eq(main->stats.total_ns, main->stats.self_ns);
	recorder_free(&r);
}

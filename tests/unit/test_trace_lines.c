// SPDX-License-Identifier: BSD-2-Clause
/* Arrays of lines: how they grow, and how much there is of them in all. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "trace/lines.h"
#include "trace/program.h"
#include "trace/stats.h"

/* What is copied at each growth adds up to no more than a few times the lines. */
Test(trace_lines, an_array_doubles)
{
	for (int down = 0; down < 2; down++) {
		struct stats_lines lines = {};
		uint64_t left = LINES_KEPT_MAX, copied = 0;

		for (int64_t i = 0; i < 400; i++) {
			int64_t line = 4096 * (down ? 400 - i : i);
			uint32_t before = lines.n;

			cr_assert_eq(lines_grow(&lines, lines_reach(&lines, line, line), &left), 0);
			cr_assert_not_null(stats_line(&lines, line));
			cr_assert_eq(left, LINES_KEPT_MAX - lines.n);
			copied += lines.n > before ? before : 0;
		}
		cr_expect_lt(copied, 2 * (uint64_t)lines.n);
		free(lines.at);
	}
}

Test(trace_lines, no_more_than_is_left)
{
	struct stats_lines lines = {};
	uint64_t left = 100;

	cr_assert_eq(lines_grow(&lines, lines_reach(&lines, 5, 5), &left), 0);
	cr_assert_eq(lines_grow(&lines, lines_reach(&lines, 1000, 1000), &left), -ENOSPC);
	cr_expect(stats_line(&lines, 5) && !stats_line(&lines, 1000));
	cr_expect_eq(left, 100 - lines.n);
	free(lines.at);
}

static void put(struct stats *s, enum trace_action_kind kind, uint32_t arg)
{
	const struct trace_action action = {.kind = kind, .arg = arg};

	cr_assert_eq(stats_put(s, &action), 0);
}

/* A hundred states, each with two lines far apart: they share the room, and what has none is counted. */
Test(trace_lines, states_share_the_room)
{
	struct program_function f = {.first = 1, .last = 16000000, .name = "f"};
	struct stats *states[100];
	uint64_t kept = 0;
	struct program *p;
	uint32_t id;

	cr_assert(!program_new(&p) && !program_source(p, "@x.lua", 6, &f.source) &&
		  !program_function(p, &f, &id));
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert_eq(stats_new(p, &states[i]), 0);
		put(states[i], TRACE_RESUME, 0);
		put(states[i], TRACE_CALL, id);
		put(states[i], TRACE_LINE, 1 + 100000 * i);
		put(states[i], TRACE_LINE, 300000 + 100000 * i);
		cr_assert_leq(p->state_lines_left, LINES_KEPT_MAX);
	}
	for (uint32_t i = 0; i < 100; i++) {
		stats_finish(states[i]);
		cr_assert_eq(stats_merge(states[i]), 0);
		stats_free(&states[i]);
	}
	cr_assert_leq(p->lines_left, LINES_KEPT_MAX);
	for (uint32_t i = 0; i < p->functions[id].stats.lines.n; i++)
		kept += p->functions[id].stats.lines.at[i].hits;
	cr_expect_gt(kept, 0);
	cr_expect_gt(p->lost_hits, 0);
	cr_expect_eq(kept + p->lost_hits, 200);
	program_free(&p);
}

// SPDX-License-Identifier: BSD-2-Clause
/* References: LuaJIT lj_obj.h (LJ_VMST_*, GCS*); PUC Lua lgc.h (GCS*). */
#include "state_cause.h"

/* The values of gcstate: sweep and finalise are the first of their kind, last is the highest. */
struct gc_states {
	uint8_t pause, sweep, finalise, last;
};

static struct gc_states gc_states_of(const struct lb_build *build)
{
	if (lb_is_luajit(build->family))
		return (struct gc_states){.pause = 0, .sweep = 3, .finalise = 5, .last = 5};
	switch (build->puc.puc.version) {
	case 51:
		return (struct gc_states){.pause = 0, .sweep = 2, .finalise = 4, .last = 4};
	case 52: /* finalizers run between two steps */
		return (struct gc_states){.pause = 5, .sweep = 2, .finalise = 5, .last = 5};
	case 53:
		return (struct gc_states){.pause = 7, .sweep = 2, .finalise = 6, .last = 7};
	default:
		return (struct gc_states){.pause = 8, .sweep = 3, .finalise = 7, .last = 8};
	}
}

/* In the pause a cycle begins, or a step finds that the collector is stopped. */
static enum prof_cause gc_cause(const struct lb_build *build, uint8_t gcstate)
{
	const struct gc_states s = gc_states_of(build);

	if (gcstate > s.last || gcstate == s.pause)
		return PROF_CAUSE_NONE;
	return gcstate < s.sweep ? PROF_MARK : gcstate < s.finalise ? PROF_SWEEP : PROF_FINALISE;
}

enum prof_cause state_cause(const struct lb_build *build, uint32_t state)
{
	static const uint8_t compiler[] = {
		[4] = PROF_EXIT, [5] = PROF_RECORD, [6] = PROF_OPTIMISE, [7] = PROF_ASSEMBLE};
	uint8_t detail = LB_STATE_DETAIL(state);

	if (!detail)
		return PROF_CAUSE_NONE;
	switch (LB_STATE_LETTER(state)) {
	case 'N':
		return PROF_IN_LOOP;
	case 'J':
		return detail < sizeof(compiler) ? compiler[detail] : PROF_CAUSE_NONE;
	case 'G':
		return gc_cause(build, detail - 1);
	}
	return PROF_CAUSE_NONE;
}

// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>

#include "prof/name.h"
#include "sym/state_cause.h"

TestSuite(state_cause);

static enum prof_cause gc(uint32_t family, uint8_t version, int gcstate)
{
	struct lb_build build = {.family = family};

	if (family == LB_FAMILY_PUC)
		build.puc.puc.version = version;
	return state_cause(&build, LB_STATE('G', gcstate + 1));
}

/* The states of each version, from 0 on: pause, mark, sweep, finalise, and one that is none. */
Test(state_cause, of_the_collector)
{
	static const struct {
		uint32_t family;
		uint8_t version;
		const char *states;
	} vms[] = {
		{LB_FAMILY_LJ, 0, "pmmssfp"},	   {LB_FAMILY_LJ32, 0, "pmmssfp"},
		{LB_FAMILY_PUC, 51, "pmssfp"},	   {LB_FAMILY_PUC, 52, "mmssspp"},
		{LB_FAMILY_PUC, 53, "mmssssfpp"},  {LB_FAMILY_PUC, 54, "mmmssssfpp"},
		{LB_FAMILY_PUC, 55, "mmmssssfpp"},
	};

	for (size_t i = 0; i < sizeof(vms) / sizeof(vms[0]); i++) {
		for (int at = 0; vms[i].states[at]; at++) {
			enum prof_cause want = vms[i].states[at] == 'm'	  ? PROF_MARK
					       : vms[i].states[at] == 's' ? PROF_SWEEP
					       : vms[i].states[at] == 'f' ? PROF_FINALISE
									  : PROF_CAUSE_NONE;

			cr_expect_eq(gc(vms[i].family, vms[i].version, at), want, "%d: state %d",
				     vms[i].version, at);
		}
		cr_expect_eq(gc(vms[i].family, vms[i].version, 200), PROF_CAUSE_NONE);
	}
}

Test(state_cause, of_compiled_code_and_the_compiler)
{
	static const struct lb_build build = {.family = LB_FAMILY_LJ};

	cr_expect_eq(state_cause(&build, LB_STATE('N', LB_IN_LOOP)), PROF_IN_LOOP);
	cr_expect_eq(state_cause(&build, LB_STATE('N', 0)), PROF_CAUSE_NONE);
	cr_expect_eq(state_cause(&build, LB_STATE('J', 5)), PROF_RECORD);
	cr_expect_eq(state_cause(&build, LB_STATE('J', 7)), PROF_ASSEMBLE);
	cr_expect_eq(state_cause(&build, LB_STATE('J', 8)), PROF_CAUSE_NONE);
	cr_expect_eq(state_cause(&build, LB_STATE('J', 1)), PROF_CAUSE_NONE);
	cr_expect_eq(state_cause(&build, LB_STATE('I', 3)), PROF_CAUSE_NONE);
}

Test(state_cause, names)
{
	for (int i = 0; i < PROF_CAUSES; i++)
		cr_expect_eq(name_cause_of(name_cause((enum prof_cause)i)), (enum prof_cause)i);
	cr_expect_eq(name_cause_of("no such"), PROF_CAUSE_NONE);
	cr_expect_str_eq(name_cause((enum prof_cause)200), "");
}

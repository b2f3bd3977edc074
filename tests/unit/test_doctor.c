// SPDX-License-Identifier: BSD-2-Clause
/* What doctor says of a module, and what it concludes from a recording. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "doctor/doctor.h"

static char said[2048];
static enum doctor_verdict verdict;

static void keep(void *arg, enum doctor_verdict v, const char *object, const char *what,
		 const char *remedy)
{
	(void)arg;
	verdict = v;
	snprintf(said, sizeof(said), "%s: %s; %s", object, what, remedy);
}

static const struct doctor doctor = {.report = keep};

/* A recording of 0.3 s: so many samples became stacks, were outside Lua, were lost as torn. */
static void judge(uint64_t resolved, uint64_t outside, uint64_t torn, enum session_end end)
{
	struct prof_labels labels = {.vmstate = 'I', .pid = 1, .tid = 1, .comm = "x"};
	struct session_stats stats = {
		.end = end,
		.period_ns = 1000000,
		.wall_ns = 300000000,
		.cpu_ns = (resolved + outside + torn) * 1000000,
	};
	struct prof *prof __cleanup(prof_free) = NULL;
	struct summary summary;

	cr_assert_eq(prof_new(&prof), 0);
	if (resolved)
		cr_assert_eq(prof_add(prof, NULL, 0, &labels, resolved), 0);
	if (outside)
		cr_assert_eq(prof_lose(prof, "outside-lua", outside), 0);
	if (torn)
		cr_assert_eq(prof_lose(prof, "stack-changing", torn), 0);
	summary_make(&stats, prof, &summary);
	doctor_judge(&doctor, &summary);
}

Test(doctor, proof)
{
	judge(297, 3, 0, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_OK);
	cr_expect_str_eq(said, "proof: proved on the live target: 297 of 297 walks came to their "
			       "end; 3 samples outside Lua; ");
	judge(298, 0, 2, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_OK, "less than one in a hundred");
	cr_expect_not_null(strstr(said, "298 of 300 walks"));
	cr_expect_not_null(strstr(said, "; lost 2 (stack-changing): the Lua stack was caught"),
			   "%s", said);
	judge(200, 0, 100, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_WARN);
	judge(100, 100, 150, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_FAIL);
	cr_expect_not_null(strstr(said, "patched"));
	cr_expect_not_null(strstr(said, "not proved"));
}

/* Nothing to prove is no failure. */
Test(doctor, no_proof)
{
	judge(0, 0, 0, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_WARN);
	cr_expect_not_null(strstr(said, "not proved: 0.0 ms of CPU time in 0.3 s: the process is "
					"idle; ask again"),
			   "%s", said);
	judge(0, 0, 0, SESSION_TARGETS_ENDED);
	cr_expect_eq(verdict, DOCTOR_WARN);
	cr_expect_not_null(strstr(said, "has ended"));
	judge(0, 300, 0, SESSION_DURATION);
	cr_expect_eq(verdict, DOCTOR_WARN);
	cr_expect_not_null(strstr(said, "all of it outside Lua"));
}

Test(doctor, module_text)
{
	static struct vm_build build = {.name = "PUC Lua 5.9", .evidence = "lua_ident \"\033[2J\""};
	struct lb_module at = {
		.vm_start = 0x1000,
		.vm_end = 0x2000,
		.gc_lo = 0x3000,
		.gc_hi = 0x3800,
		.family = LB_FAMILY_PUC,
	};
	const struct doctor_module m = {.build = &build, .at = &at, .path = "/a\nb/\033[1mlua"};
	__text struct text text = {0};

	build.build.family = LB_FAMILY_PUC;
	build.build.puc.pc_reg = 3;
	doctor_module_text(&m, &text);
	cr_expect_str_eq(text_str(&text),
			 "/a\\x0ab/\\x1b[1mlua: PUC Lua 5.9; interpreter 0x1000-0x2000; collector "
			 "0x3000-0x3800; pc in rbx; lua_ident \"\\x1b[2J\"");
	text_clear(&text);
	at.gc_lo = at.gc_hi = 0;
	build.build.puc.pc_reg = PUC_NO_REG;
	build.evidence[0] = '\0';
	doctor_module_text(&m, &text);
	cr_expect_not_null(strstr(text_str(&text), "; collector not found; pc in no known "
						   "register"));
	cr_expect_null(strstr(text_str(&text), "register;"));
	text_clear(&text);
	build.build.puc.puc.flags = PUC_SAVEDPC_EXACT;
	doctor_module_text(&m, &text);
	cr_expect_not_null(strstr(text_str(&text), "; pc is saved before each instruction"));
	cr_expect_null(strstr(text_str(&text), "register"));
	text_clear(&text);
	at.family = LB_FAMILY_LJ;
	doctor_module_text(&m, &text);
	cr_expect_null(strstr(text_str(&text), "collector"));
}

Test(doctor, names_of_capabilities)
{
	char all[64], some[8] = "xxxxxxx";

	cr_expect_str_eq(caps_names(CAPS_ALL, all, sizeof(all)),
			 "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE");
	cr_expect_str_eq(caps_names(CAPS_PERFMON, all, sizeof(all)), "CAP_PERFMON");
	cr_expect_str_eq(caps_names(0, all, sizeof(all)), "");
	cr_expect_str_eq(caps_names(CAPS_BPF | CAPS_PERFMON, some, sizeof(some)), "CAP_BPF",
			 "cut, and terminated");
}

/* Criterion runs each test in a process of its own: this one gives all of them up. */
Test(doctor, missing_capabilities)
{
	cap_t none = cap_init();

	cr_assert_eq(cap_set_proc(none), 0);
	cap_free(none);
	cr_expect_eq(caps_missing(CAPS_ALL), CAPS_ALL);
	cr_expect_eq(caps_missing(CAPS_PERFMON), CAPS_PERFMON);
	cr_expect_eq(caps_missing(0), 0);
}

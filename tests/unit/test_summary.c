// SPDX-License-Identifier: BSD-2-Clause
/* What a recording says of itself. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/summary.h"

/* A profile of n samples, and losses by the reasons given. */
static struct prof *profile(uint64_t n, uint64_t outside, uint64_t torn, uint64_t reused)
{
	struct prof_labels labels = {.vmstate = 'I', .pid = 1, .tid = 1, .comm = "x"};
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	if (n)
		cr_assert_eq(prof_add(prof, NULL, 0, &labels, n), 0);
	if (outside)
		cr_assert_eq(prof_lose(prof, "outside-lua", outside), 0);
	if (torn)
		cr_assert_eq(prof_lose(prof, "stack-changing", torn), 0);
	if (reused)
		cr_assert_eq(prof_lose(prof, "proto-ambiguous", reused), 0);
	return prof;
}

static char *text_of(const struct summary *s, const char *written)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	summary_print(s, written, f);
	fclose(f);
	return text;
}

static cJSON *json_of(const struct summary *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	cJSON *json;

	cr_assert_eq(summary_json(s, f), 0);
	fclose(f);
	json = cJSON_Parse(text);
	cr_assert_not_null(json, "%s", text);
	cr_expect_eq(text[size - 1], '\n');
	free(text);
	return json;
}

static double number(const cJSON *json, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	cr_assert(cJSON_IsNumber(item), "%s", key);
	return item->valuedouble;
}

static const struct session_stats stats = {
	.end = SESSION_SIGNAL,
	.period_ns = 10000000,
	.wall_ns = 4000000000,
	.cpu_ns = 2000000000,
	.bpf_ns = 400000,
	.bpf_runs = 2000, /* events: ten for a sample */
	.first_sample_ns = 30000000,
	.stacks = 1,
};

Test(summary, sums)
{
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 3, 2);
	struct summary s;

	summary_make(&stats, prof, &s);
	cr_expect_eq(s.resolved, 180);
	cr_expect_eq(s.outside, 15);
	cr_expect_eq(s.lost, 5);
	cr_expect_eq(summary_lost_ppm(&s), 5 * 1000000 / 185);
}

Test(summary, json)
{
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 3, 2);
	const cJSON *by;
	struct summary s;
	cJSON *json;

	summary_make(&stats, prof, &s);
	json = json_of(&s);
	cr_expect_eq(number(json, "samples"), 200);
	cr_expect_eq(number(json, "resolved"), 180);
	cr_expect_eq(number(json, "outside_lua"), 15);
	cr_expect_eq(number(json, "lost"), 5);
	cr_expect_eq(number(json, "stacks"), 1);
	cr_expect_eq(number(json, "requested_hz"), 100);
	cr_expect_eq(number(json, "achieved_hz"), 100);
	cr_expect_eq(number(json, "cpu_seconds"), 2);
	cr_expect_eq(number(json, "wall_seconds"), 4);
	cr_expect_float_eq(number(json, "first_sample_seconds"), 0.03, 1e-9);
	cr_expect_eq(number(json, "bpf_ns_per_sample"), 2000);
	cr_expect_eq(number(json, "bpf_runs"), 2000);
	by = cJSON_GetObjectItemCaseSensitive(json, "lost_by_reason");
	cr_expect_eq(cJSON_GetArraySize(by), 2);
	cr_expect_eq(number(by, "stack-changing"), 3);
	cr_expect_eq(number(by, "proto-ambiguous"), 2);
	cr_expect_str_eq(cJSON_GetObjectItemCaseSensitive(json, "ended_by")->valuestring, "signal");
	cJSON_Delete(json);
}

/* The kernel measures BPF for CAP_SYS_ADMIN only: no figure is no zero. */
Test(summary, json_without_cost)
{
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 3, 2);
	struct session_stats unmeasured = stats;
	struct summary s;
	cJSON *json;

	unmeasured.bpf_ns = unmeasured.bpf_runs = 0;
	summary_make(&unmeasured, prof, &s);
	json = json_of(&s);
	cr_expect(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(json, "bpf_ns_per_sample")));
	cr_expect(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(json, "bpf_runs")));
	cJSON_Delete(json);
}

/* Nothing sampled: no division by zero, numbers all the same. */
Test(summary, json_of_nothing)
{
	static const struct session_stats none;
	struct prof *prof __cleanup(prof_free) = profile(0, 0, 0, 0);
	struct summary s;
	cJSON *json;

	summary_make(&none, prof, &s);
	cr_expect_eq(summary_lost_ppm(&s), 0);
	json = json_of(&s);
	cr_expect_eq(number(json, "samples"), 0);
	cr_expect_eq(number(json, "requested_hz"), 0);
	cr_expect_eq(number(json, "achieved_hz"), 0);
	cr_expect_eq(number(json, "bpf_ns_per_sample"), 0);
	cr_expect_str_eq(cJSON_GetObjectItemCaseSensitive(json, "ended_by")->valuestring,
			 "duration");
	cJSON_Delete(json);
}

/* A third of the CPU time has no samples, of so much that this is no chance. */
Test(summary, missing)
{
	static const struct {
		uint64_t cpu_ns, period_ns;
		bool warns;
	} cases[] = {
		{2000000000, 10000000, false},
		{2800000000, 10000000, false},
		{3000000000, 10000000, true},
		{300000000, 1000000, true},
		{300000000, 999000, true},
		{150000000, 500000, false}, /* as may be of so many */
		{300000000, 500000, true},
		{10000000, 1000000, false},
		{0, 10000000, false},
	};
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 3, 2);
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct session_stats st = stats;
		char *text __free = NULL;
		struct summary s;

		st.cpu_ns = cases[i].cpu_ns;
		st.event_ns = st.period_ns = cases[i].period_ns;
		summary_make(&st, prof, &s);
		text = text_of(&s, NULL);
		cr_expect_eq(strstr(text, "of the CPU time has no samples") != NULL, cases[i].warns,
			     "case %zu: %s", i, text);
		cr_expect_eq(strstr(text, "; in a virtual machine it may be") != NULL,
			     cases[i].warns, "case %zu: %s", i, text);
	}
}

/* From a hundredth of the samples on, a message says that compiled code has lines of guards; without lines, from a
 * twentieth on. */
Test(summary, lines)
{
	static const struct {
		uint64_t n;
		bool lines, says;
	} cases[] = {{1, true, false}, {2, true, true}, {9, false, false}, {10, false, true}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct prof *prof __cleanup(prof_free) = profile(200 - cases[i].n, 0, 0, 0);
		struct prof_labels labels = {.vmstate = 'N', .snapshot_line = true};
		char *text __free = NULL;
		size_t size;
		FILE *f;

		cr_assert_eq(prof_add(prof, NULL, 0, &labels, cases[i].n), 0);
		f = open_memstream(&text, &size);
		summary_print_lines(prof, cases[i].lines, f);
		fclose(f);
		if (!cases[i].says)
			cr_expect_str_eq(text, "", "case %zu", i);
		else
			cr_expect_not_null(strstr(text, " % of the samples are compiled"),
					   "case %zu", i);
	}
}

Test(summary, text)
{
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 3, 2);
	char *text __free = NULL;
	struct summary s;

	summary_make(&stats, prof, &s);
	text = text_of(&s, "out.pb.gz");
	cr_expect_not_null(strstr(text, "luabpf: out.pb.gz: 180 samples, 1 stack, 2.0 s of CPU"));
	cr_expect_not_null(
		strstr(text, "at 100.0 of 100.0 Hz; outside Lua 7.5 %; lost 5 (2.70 %)"));
	cr_expect_not_null(strstr(text, "; 2000 ns in BPF per sample\n"));
	cr_expect_not_null(strstr(text, "lost 3 (stack-changing): the Lua stack was caught"));
	cr_expect_not_null(strstr(text, "lost 2 (proto-ambiguous): another prototype"));
	cr_expect_null(strstr(text, "(outside-lua)"));
}

Test(summary, text_tells_why_there_is_nothing)
{
	struct session_stats idle = stats;
	struct prof *prof __cleanup(prof_free) = profile(0, 0, 0, 0);
	struct prof *out __cleanup(prof_free) = profile(0, 200, 0, 0);
	char *text __free = NULL, *other __free = NULL, *all __free = NULL, *closed __free = NULL;
	struct summary s;

	idle.cpu_ns = 1000000;
	summary_make(&idle, prof, &s);
	text = text_of(&s, NULL);
	cr_expect_not_null(strstr(text, "used 1.0 ms of CPU time; it was idle"), "%s", text);
	summary_make(&stats, out, &s);
	other = text_of(&s, NULL);
	cr_expect_not_null(strstr(other, "no samples in Lua"), "%s", other);
	idle.everywhere = true;
	summary_make(&idle, prof, &s);
	all = text_of(&s, NULL);
	cr_expect_not_null(strstr(all, "no process that runs Lua used the CPU"), "%s", all);
	idle.closed = true;
	summary_make(&idle, prof, &s);
	closed = text_of(&s, NULL);
	cr_expect_not_null(strstr(closed, "could not be opened"), "%s", closed);
	cr_expect_null(strstr(closed, "idle"), "%s", closed);
}

Test(summary, ends_in_the_kernel)
{
	struct session_stats st = stats;
	struct prof *prof __cleanup(prof_free) = profile(180, 15, 0, 0);
	char *text __free = NULL;
	struct summary s;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	st.status_counts[LB_STATUS_RESOLVED] = 180;
	st.status_counts[LB_STATUS_OUTSIDE] = 15;
	summary_make(&st, prof, &s);
	summary_print_ends(&s, f);
	fclose(f);
	cr_expect_str_eq(text, "luabpf: in the kernel: 180 resolved, 15 outside-lua, 2000 runs of "
			       "BPF; first sample after 30.0 ms; ended by signal\n");
}

Test(summary, many_losses_raise_doubt)
{
	struct prof *prof __cleanup(prof_free) = profile(10, 0, 30, 0);
	char *text __free = NULL;
	struct summary s;

	summary_make(&stats, prof, &s);
	text = text_of(&s, NULL);
	cr_expect_not_null(strstr(text, "could not be walked: a VM that was patched?"), "%s", text);
	cr_expect_not_null(strstr(text, "luabpf doctor -p PID"));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of --metrics. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/losses.h"
#include "record/metrics.h"

static void expect_label(const char *value, const char *escaped)
{
	__text struct text out = {0};

	metrics_put_label(&out, value);
	cr_assert_eq(text_err(&out), 0);
	cr_expect_str_eq(text_str(&out), escaped);
}

/* A label ends at a quote, a line at a line feed. Bytes that are not UTF-8 are no label. */
Test(metrics, labels)
{
	expect_label("plain", "plain");
	expect_label("a\"b", "a\\\"b");
	expect_label("a\\b", "a\\\\b");
	expect_label("a\nb", "a\\\\x0ab");
	expect_label("\xff\xe2\x80\xae", "\\\\xff\\\\xe2\\\\x80\\\\xae");
	expect_label("\xc3\xa9", "\xc3\xa9");
}

static void put(struct prof *prof, uint64_t resolved, const char *reason, uint64_t lost)
{
	const struct prof_labels labels = {.vmstate = 'I'};

	cr_assert_eq(prof_add(prof, NULL, 0, &labels, resolved), 0);
	cr_assert_eq(prof_lose(prof, reason, lost), 0);
	cr_assert_eq(prof_lose(prof, "outside-lua", 5), 0);
}

static char *text_of(const struct metrics *m)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(metrics_write(m, f), 0);
	fclose(f);
	return text;
}

#define expect_in(text, what) cr_expect_not_null(strstr(text, what), "no %s", what)

Test(metrics, text)
{
	const struct session_stats stats = {
		.time_ns = 1795671997320612061, .cpu_ns = 2000000001, .records = 7};
	const struct session_sizes sizes = {.processes = 3, .open_fds = 40};
	__cleanup(prof_free) struct prof *prof = NULL;
	struct summary run;
	struct metrics m = {.run = &run,
			    .profiles = 4,
			    .unwritten_profiles = 1,
			    .vms = {"a \"VM\""},
			    .nvms = 1};
	char *text;

	cr_assert_eq(prof_new(&prof), 0);
	put(prof, 100, "ring-full", 2);
	summary_make(&stats, prof, &run);
	run.sizes = &sizes;
	text = text_of(&m);
	expect_in(text, "# TYPE luabpf_samples_total counter\nluabpf_samples_total 107\n");
	expect_in(text, "\nluabpf_resolved_samples_total 100\n");
	expect_in(text, "\nluabpf_outside_lua_samples_total 5\n");
	expect_in(text, "\nluabpf_lost_samples_total{reason=\"ring-full\"} 2\n");
	expect_in(text, "\nluabpf_lost_samples_total{reason=\"fault\"} 0\n");
	cr_expect_null(strstr(text, "reason=\"outside-lua\""));
	cr_expect_null(strstr(text, "reason=\"resolved\""));
	expect_in(text, "\nluabpf_start_time_seconds 1795671997.320612061\n");
	expect_in(text, "\nluabpf_sampled_cpu_seconds_total 2.000000001\n");
	expect_in(text, "\nluabpf_profiles_total 4\n");
	expect_in(text, "\nluabpf_unwritten_profiles_total 1\n");
	expect_in(text, "# TYPE luabpf_processes gauge\nluabpf_processes 3\n");
	expect_in(text, "\nluabpf_open_fds 40\n");
	expect_in(text, "\nluabpf_vm_build_info{build=\"0\",name=\"a \\\"VM\\\"\"} 1\n");
	free(text);
}

/* The names of losses that --stats and the summary have are those of the metrics. */
Test(metrics, each_reason_once)
{
	const char *reason;
	size_t n = 0;

	for (; (reason = loss_reason(n)); n++)
		for (size_t i = 0; i < n; i++)
			cr_expect_str_neq(loss_reason(i), reason);
	cr_expect_geq(n, 15);
}

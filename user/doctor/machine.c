// SPDX-License-Identifier: BSD-2-Clause
/* The checks of the machine: architecture, kernel, rights, limits. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "bpf/kernel_btf.h"
#include "bpf/loader.h"
#include "doctor.h"
#include "proc/process.h"

static void ok(const struct doctor *d, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void ok(const struct doctor *d, const char *object, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	d->report(d->arg, DOCTOR_OK, object, what, "");
}

static void fail(const struct doctor *d, const char *object, const struct error *err)
{
	d->report(d->arg, DOCTOR_FAIL, object, err->what, err->remedy);
}

static void check_kernel(const struct doctor *d)
{
	struct utsname u;
	struct error err;

	if (uname(&u))
		return;
	if (!strcmp(u.machine, "x86_64")) {
		ok(d, "kernel", "%s %s, %s", u.sysname, u.release, u.machine);
		return;
	}
	error_set(&err, 0, "%s %s, %s: not x86-64", u.sysname, u.release, u.machine);
	error_remedy(&err, 0, "luabpf profiles x86-64 programs on x86-64 kernels only");
	fail(d, "kernel", &err);
}

static void check_btf(const struct doctor *d)
{
	struct error err;

	if (kernel_btf_check(&err))
		fail(d, "kernel BTF", &err);
	else
		ok(d, "kernel BTF", "%s", KERNEL_BTF);
}

static void check_privilege(const struct doctor *d)
{
	int missing = caps_missing(CAPS_ALL);
	struct error err;
	char names[64];

	if (missing < 0) {
		error_set(&err, 0, "capget: this process's capabilities are unknown: %s",
			  strerror(-missing));
		error_remedy(&err, 0, "run as root, without a seccomp filter");
	} else if (missing) {
		error_set(&err, 0, "user %u lacks %s", (unsigned)geteuid(),
			  caps_names((unsigned)missing, names, sizeof(names)));
		error_remedy(&err, 0, "%s", caps_remedy());
	} else if (caps_in_container()) {
		error_set(&err, 0, "root of a user namespace (a rootless container) only");
		error_remedy(&err, 0, "run luabpf as root of the host");
	} else {
		ok(d, "privilege", "user %u has %s", (unsigned)geteuid(),
		   caps_names(CAPS_ALL, names, sizeof(names)));
		return;
	}
	fail(d, "privilege", &err);
}

/* Sampling works without these, with the limits that `use` names. */
static const struct {
	unsigned caps;
	const char *object, *use;
} further[] = {
	{CAPS_DAC_READ_SEARCH, "closed files", "programs whose files only their users can read"},
	{CAPS_FILES, "replaced files", "programs whose files were deleted or replaced"},
	{CAPS_SOURCES, "source files", "-jp=a and -jp=A of other users' processes"},
	{CAPS_SYS_ADMIN, "time in BPF", "the BPF time of -v, --stats and --metrics"},
};

static void check_further(const struct doctor *d)
{
	char names[128], what[256];

	for (size_t i = 0; i < sizeof(further) / sizeof(further[0]); i++) {
		int missing = caps_missing(further[i].caps);

		if (missing < 0)
			return;
		if (!missing) {
			ok(d, further[i].object, "%s: %s", further[i].use,
			   caps_names(further[i].caps, names, sizeof(names)));
			continue;
		}
		snprintf(what, sizeof(what), "not %s: user %u lacks %s", further[i].use,
			 (unsigned)geteuid(), caps_names((unsigned)missing, names, sizeof(names)));
		d->report(d->arg, DOCTOR_WARN, further[i].object, what,
			  "optional: run as root, or give luabpf the missing capabilities");
	}
}

static void check_filter(const struct doctor *d)
{
	if (confine_has_filters())
		ok(d, "seccomp", "the kernel can filter luabpf's system calls");
	else
		d->report(d->arg, DOCTOR_WARN, "seccomp",
			  "the kernel has no system call filter: luabpf samples unfiltered",
			  "boot a kernel built with CONFIG_SECCOMP_FILTER=y");
}

static void check_namespace(const struct doctor *d)
{
	struct error err;

	if (process_check_namespace(&err))
		fail(d, "pid namespace", &err);
	else
		ok(d, "pid namespace", "the host's");
}

static void check_events(const struct doctor *d)
{
	struct error err;

	if (loader_check_events(&err))
		fail(d, "perf events", &err);
	else
		ok(d, "perf events", "the cpu-clock event opens");
}

static void check_bpf(const struct doctor *d)
{
	const struct loader_options options = {};
	struct loader *loader __cleanup(loader_free) = NULL;
	struct error err;
	int r = loader_open(&options, &loader, &err);

	if (!r) {
		loader_request_families(loader, LB_FAMILIES);
		r = loader_wait_families(loader, &err);
	}
	if (r == -EMFILE)
		error_remedy(&err, 0, "raise the limit of open files: ulimit -n 4096");
	if (r)
		fail(d, "BPF", &err);
	else
		ok(d, "BPF", "the sampling program loads (bpf_loop, bpf_find_vma, ring buffer)");
}

/* ---- settings: a restrictive one is reported with the capability that lifts it --------------- */

static bool read_line(const char *path, char *buf, size_t size)
{
	FILE *f __fclose = fopen(path, "re");

	if (!f || !fgets(buf, (int)size, f))
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* A value above `limit` requires the capability. */
static void check_gate(const struct doctor *d, const char *path, long limit, unsigned cap)
{
	const char *object = strrchr(path, '/') + 1;
	char value[32], what[64], remedy[96], name[64];
	bool shut;

	if (!read_line(path, value, sizeof(value)))
		return;
	caps_names(cap, name, sizeof(name));
	shut = strtol(value, NULL, 10) > limit;
	if (!shut || (!caps_missing(cap) && !caps_in_container())) {
		ok(d, object, "%s%s%s%s", value, shut ? " (not for who has " : "", shut ? name : "",
		   shut ? ")" : "");
		return;
	}
	snprintf(what, sizeof(what), "%s: closed to this process", value);
	snprintf(remedy, sizeof(remedy), "%s on the host opens it", name);
	d->report(d->arg, DOCTOR_WARN, object, what, remedy);
}

/* The kernel lowers the rate itself when its interrupts take too long. */
static void check_max_rate(const struct doctor *d)
{
	static const char path[] = "/proc/sys/kernel/perf_event_max_sample_rate";
	char value[32], what[96];
	long rate;

	if (!read_line(path, value, sizeof(value)))
		return;
	rate = strtol(value, NULL, 10);
	if (rate >= 1000) {
		ok(d, "perf_event_max_sample_rate", "%ld", rate);
		return;
	}
	snprintf(what, sizeof(what), "%ld: the kernel drops samples beyond this rate", rate);
	d->report(d->arg, DOCTOR_WARN, "perf_event_max_sample_rate", what,
		  "sysctl kernel.perf_event_max_sample_rate=100000");
}

/* "[none] integrity confidentiality" */
static void check_lockdown(const struct doctor *d)
{
	char modes[128];

	if (!read_line("/sys/kernel/security/lockdown", modes, sizeof(modes)))
		return;
	if (strstr(modes, "[confidentiality]"))
		d->report(d->arg, DOCTOR_WARN, "lockdown",
			  "confidentiality: BPF programs may not read what they need",
			  "boot without lockdown=confidentiality");
	else
		ok(d, "lockdown", "%s", modes);
}

/* A thread takes two descriptors. */
static void check_files(const struct doctor *d)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit))
		ok(d, "open files", "%llu: for about %llu threads at a time",
		   (unsigned long long)limit.rlim_max,
		   (unsigned long long)(limit.rlim_max > 64 ? (limit.rlim_max - 64) / 2 : 0));
}

void doctor_machine(const struct doctor *d)
{
	check_kernel(d);
	check_btf(d);
	check_privilege(d);
	check_further(d);
	check_filter(d);
	check_namespace(d);
	check_events(d);
	check_bpf(d);
	/* kernel/events/core.c: perf_event_paranoid; kernel/bpf/syscall.c */
	check_gate(d, "/proc/sys/kernel/perf_event_paranoid", 0,
		   caps_events_are_admins() ? CAPS_SYS_ADMIN : CAPS_PERFMON);
	check_gate(d, "/proc/sys/kernel/unprivileged_bpf_disabled", 0, CAPS_BPF);
	check_max_rate(d);
	check_lockdown(d);
	check_files(d);
}

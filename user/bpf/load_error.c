// SPDX-License-Identifier: BSD-2-Clause
#include "load_error.h"

#include <errno.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "base/caps.h"

int load_error_privilege(int r, const char *what, struct error *err)
{
	int missing = caps_missing(CAPS_ALL);
	char names[64];

	if (missing < 0) {
		error_set(err, r, "%s: not permitted", what);
		return error_remedy(err, r, "run as root (sudo luabpf ...)");
	}
	if (missing) {
		error_set(err, r, "%s: not permitted; this process lacks %s", what,
			  caps_names((unsigned)missing, names, sizeof(names)));
		return error_remedy(err, r, "%s", caps_remedy());
	}
	if (caps_in_container()) {
		error_set(err, r,
			  "%s: not permitted; this is root of a user namespace (a rootless "
			  "container) only",
			  what);
		return error_remedy(err, r, "run luabpf as root of the host");
	}
	if (caps_events_are_admins() && caps_missing(CAPS_SYS_ADMIN)) {
		error_set(err, r, "%s: not permitted; this kernel asks for CAP_SYS_ADMIN", what);
		return error_remedy(err, r,
				    "sysctl kernel.perf_event_paranoid=2 lets CAP_PERFMON do");
	}
	error_set(err, r, "%s: refused, although no capability is missing", what);
	return error_remedy(err, r,
			    "is the kernel locked down (/sys/kernel/security/lockdown), "
			    "or a seccomp filter at work?");
}

/* Helpers that the sampling program calls and older kernels lack. */
static const struct {
	enum bpf_func_id id;
	const char *name;
} helpers[] = {
	{BPF_FUNC_loop, "bpf_loop"},
	{BPF_FUNC_find_vma, "bpf_find_vma"},
	{BPF_FUNC_ringbuf_reserve, "bpf_ringbuf_reserve"},
};

static const char *missing_helper(void)
{
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
		if (!libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helpers[i].id, NULL))
			return helpers[i].name;
	}
	return NULL;
}

int load_error(int r, struct error *err)
{
	const char *helper;

	if (r == -EPERM || r == -EACCES)
		return load_error_privilege(r, "loading BPF programs", err);
	helper = missing_helper();
	if (helper)
		error_set(err, r, "BPF programs: this kernel has no %s", helper);
	else
		error_set(err, r, "BPF programs: the kernel refused them: %s", strerror(-r));
	return error_remedy(err, r, "luabpf needs Linux 5.17 or newer");
}

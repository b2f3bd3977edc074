// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "caps.h"

static const struct {
	unsigned bit;
	cap_value_t value;
	bool in_admin; /* CAP_SYS_ADMIN stands for it: capability.h, bpf_capable() */
	const char *name;
} known[] = {
	{CAPS_BPF, CAP_BPF, true, "CAP_BPF"},
	{CAPS_PERFMON, CAP_PERFMON, true, "CAP_PERFMON"},
	{CAPS_SYS_PTRACE, CAP_SYS_PTRACE, false, "CAP_SYS_PTRACE"},
};
#define NKNOWN (sizeof(known) / sizeof(known[0]))

static bool in_effect(cap_t caps, cap_value_t value)
{
	cap_flag_value_t has = CAP_CLEAR;

	return !cap_get_flag(caps, value, CAP_EFFECTIVE, &has) && has == CAP_SET;
}

int caps_missing(unsigned wanted)
{
	cap_t caps = cap_get_proc();
	unsigned missing = 0;
	bool admin;

	if (!caps)
		return -errno;
	admin = in_effect(caps, CAP_SYS_ADMIN);
	for (size_t i = 0; i < NKNOWN; i++) {
		if (!in_effect(caps, known[i].value) && !(known[i].in_admin && admin))
			missing |= known[i].bit;
	}
	cap_free(caps);
	return (int)(missing & wanted);
}

const char *caps_names(unsigned which, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < NKNOWN && used < size; i++) {
		if (which & known[i].bit)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
						 known[i].name);
	}
	return buf;
}

/* include/linux/proc_ns.h: PROC_USER_INIT_INO, an ABI since namespaces have numbers. */
#define ROOT_USER_NAMESPACE 0xeffffffdU

bool caps_in_container(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino != ROOT_USER_NAMESPACE;
}

void caps_more_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

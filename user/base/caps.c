// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "caps.h"
#include "cleanup.h"
#include "pager.h"
#include "uses.h"

static const struct {
	unsigned bit;
	cap_value_t value;
	bool in_admin; /* CAP_SYS_ADMIN stands for it: capability.h, bpf_capable() */
	const char *name;
} known[] = {
	{CAPS_BPF, CAP_BPF, true, "CAP_BPF"},
	{CAPS_PERFMON, CAP_PERFMON, true, "CAP_PERFMON"},
	{CAPS_SYS_PTRACE, CAP_SYS_PTRACE, false, "CAP_SYS_PTRACE"},
	{CAPS_DAC_READ_SEARCH, CAP_DAC_READ_SEARCH, false, "CAP_DAC_READ_SEARCH"},
	{CAPS_CHECKPOINT_RESTORE, CAP_CHECKPOINT_RESTORE, true, "CAP_CHECKPOINT_RESTORE"},
	{CAPS_SETUID, CAP_SETUID, false, "CAP_SETUID"},
	{CAPS_SETGID, CAP_SETGID, false, "CAP_SETGID"},
	{CAPS_SYS_ADMIN, CAP_SYS_ADMIN, false, "CAP_SYS_ADMIN"},
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

const char *caps_remedy(void)
{
	return geteuid()
		       ? "run as root (sudo luabpf ...), or give it these capabilities"
		       : "root lacks them in a container: start it with --privileged, or --cap-add "
			 "each";
}

/* The capabilities that are kept, each for these uses. */
static const struct {
	cap_value_t value;
	unsigned uses;
	bool in_admin;
} kept[] = {
	/* memory of other users' processes; their maps, exe, root, cwd and ns in /proc */
	{CAP_SYS_PTRACE, USE_TARGETS | USE_LOADING, false},
	/* executable files, directories on the way to them and map_files, closed to our user */
	{CAP_DAC_READ_SEARCH, USE_TARGETS | USE_SOURCES | USE_LOADING, false},
	/* /proc/PID/map_files/N: a file that was deleted, replaced, or has no path here */
	{CAP_CHECKPOINT_RESTORE, USE_TARGETS | USE_LOADING, true},
	/* events on threads of processes that are met while it samples */
	{CAP_PERFMON, USE_CHILDREN | USE_LOADING | USE_PROGRAMS, true},
	/* a lower nice value while a recording opens */
	{CAP_SYS_NICE, USE_LOADING, false},
	{CAP_BPF, USE_OLD_MAPS | USE_LOADING | USE_PROGRAMS, true},
	/* root's outputs in other users' directories; a source file that the target's user opens by it */
	{CAP_DAC_OVERRIDE, USE_FILES | USE_SOURCES, false},
	/* the group of the file that an output replaces */
	{CAP_CHOWN, USE_FILES, false},
	/* setfsuid(2), setfsgid(2), setgroups(2) */
	{CAP_SETUID, USE_CALLER | USE_SOURCES, false},
	{CAP_SETGID, USE_CALLER | USE_SOURCES, false},
	/* a target's root directory */
	{CAP_SYS_CHROOT, USE_SOURCES, false},
	/* BPF_ENABLE_STATS of bpf(2); perf_event_open(2) where perf_event_paranoid is 3 */
	{CAP_SYS_ADMIN, USE_COST | USE_EVENTS, false},
	/* SIGTERM for a launched command of the user who called sudo */
	{CAP_KILL, USE_COMMAND, false},
};

static bool permitted(cap_t caps, cap_value_t value)
{
	cap_flag_value_t has = CAP_CLEAR;

	return !cap_get_flag(caps, value, CAP_PERMITTED, &has) && has == CAP_SET;
}

static void caps_free(cap_t *caps)
{
	cap_free(*caps);
}

/* Needs CAP_SETPCAP. Without it, no_new_privs alone prevents gains by exec. */
static void empty_bounding_set(void)
{
	for (cap_value_t value = 0; cap_get_bound(value) >= 0; value++)
		if (cap_drop_bound(value))
			return;
}

static int set_effective(cap_t caps, cap_value_t value, bool effective)
{
	if (!permitted(caps, value))
		return 0;
	return cap_set_flag(caps, CAP_EFFECTIVE, 1, &value, effective ? CAP_SET : CAP_CLEAR);
}

int caps_in_effect(unsigned which, bool effective)
{
	cap_t caps __cleanup(caps_free) = cap_get_proc();
	int r = caps ? set_effective(caps, CAP_SYS_ADMIN, effective) : -1;

	for (size_t i = 0; i < NKNOWN && !r; i++)
		if (known[i].bit & which)
			r = set_effective(caps, known[i].value, effective);
	return r || cap_set_proc(caps) ? -errno : 0;
}

/* The value 3 is a patch of Debian's and Ubuntu's kernels. */
bool caps_events_are_admins(void)
{
	FILE *f __fclose = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int value;

	return f && fscanf(f, "%d", &value) == 1 && value > 2;
}

static int keep(unsigned uses)
{
	cap_t has __cleanup(caps_free) = cap_get_proc(), rest __cleanup(caps_free) = cap_init();

	if (!has || !rest)
		return -errno;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		cap_value_t value = kept[i].value;

		if (!(kept[i].uses & uses))
			continue;
		if (!permitted(has, value) && kept[i].in_admin)
			value = CAP_SYS_ADMIN;
		if (permitted(has, value) &&
		    (cap_set_flag(rest, CAP_PERMITTED, 1, &value, CAP_SET) ||
		     cap_set_flag(rest, CAP_EFFECTIVE, 1, &value, CAP_SET)))
			return -errno;
	}
	empty_bounding_set();
	if (cap_set_proc(rest))
		return -errno;
	return cap_reset_ambient() && errno != EINVAL ? -errno : 0;
}

int caps_keep(unsigned uses, struct error *err)
{
	int r;

	pager_in_use(); /* opens fusectl, which may need CAP_SYS_ADMIN */
	if (uses & (USE_LOADING | USE_CHILDREN) && caps_events_are_admins())
		uses |= USE_EVENTS;
	r = keep(uses);
	if (!r)
		return 0;
	error_set(err, r, "capabilities: cannot be dropped: %s", strerror(-r));
	return error_remedy(err, r, "run as root (sudo luabpf ...)");
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

// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sets only the file-system IDs (setfsuid(2)): with the target's real user, the target could stop
 * and kill the process. Permitted capabilities are kept, to return with. The effective ones are
 * those that both have.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "creds.h"

#define MAX_GROUPS 65536 /* NGROUPS_MAX of the kernel */
#define FEW_GROUPS 64
#define NOBODY 65534
#define NO_ID ((uint32_t)-1) /* changes nothing */

/* ---- from /proc ------------------------------------------------------------------------------ */

static bool field(const char *line, const char *name, const char **value)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len))
		return false;
	*value = line + len;
	return true;
}

/* The fourth number of "Uid:" and "Gid:" is the file-system ID. */
static int fs_id(const char *value, uint32_t *id)
{
	return sscanf(value, "%*u %*u %*u %u", id) == 1 ? 0 : -EPROTO;
}

static int parse_groups(const char *value, struct creds *creds)
{
	__free gid_t *groups = calloc(strlen(value) / 2 + 1, sizeof(*groups));
	size_t n = 0;
	char *end;

	if (!groups)
		return -ENOMEM;
	for (;;) {
		unsigned long gid = strtoul(value, &end, 10);

		if (end == value)
			break;
		groups[n++] = gid;
		value = end;
	}
	if (n > MAX_GROUPS)
		return -EPROTO;
	free(creds->groups);
	creds->groups = TAKE_PTR(groups);
	creds->ngroups = n;
	return 0;
}

static int parse_status(FILE *status, struct creds *creds)
{
	__free char *line = NULL;
	size_t cap = 0;
	int seen = 0, err = 0;

	while (!err && getline(&line, &cap, status) >= 0) {
		const char *value;

		if (field(line, "Uid:", &value)) {
			err = fs_id(value, &creds->uid);
			seen++;
		} else if (field(line, "Gid:", &value)) {
			err = fs_id(value, &creds->gid);
			seen++;
		} else if (field(line, "Groups:", &value)) {
			err = parse_groups(value, creds);
			seen++;
		} else if (field(line, "CapEff:", &value)) {
			creds->caps = strtoull(value, NULL, 16);
		}
	}
	if (err)
		return err;
	return seen == 3 ? 0 : -ESRCH;
}

/* After the capabilities are read: a process enters a user namespace, where it has all, for good. */
static int drop_caps_of_others(int proc, struct creds *creds)
{
	struct stat theirs, ours;

	if (fstatat(proc, "ns/user", &theirs, 0)) {
		/* it has ended since: EACCES, too, if it does between the link's lookup and its end (proc_ns_get_link) */
		if (errno == ESRCH || errno == ENOENT || fstatat(proc, "status", &theirs, 0))
			return -ESRCH;
		creds->caps = 0;
	} else if (stat("/proc/self/ns/user", &ours) || theirs.st_dev != ours.st_dev ||
		   theirs.st_ino != ours.st_ino) {
		creds->caps = 0;
	}
	return 0;
}

int creds_read(int proc, struct creds *out)
{
	__fclose FILE *status = NULL;
	struct creds creds = {0};
	int err, fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	status = fdopen(fd, "r");
	if (!status) {
		close(fd);
		return -ENOMEM;
	}
	err = parse_status(status, &creds);
	if (!err)
		err = drop_caps_of_others(proc, &creds);
	if (err) {
		creds_free(&creds);
		return err;
	}
	*out = creds;
	return 0;
}

/* ---- of users of this machine ---------------------------------------------------------------- */

int creds_of_user(uid_t uid, struct creds *out)
{
	const struct passwd *pw = getpwuid(uid);
	__free gid_t *groups = calloc(FEW_GROUPS, sizeof(*groups));
	int n = FEW_GROUPS;

	if (uid == NO_ID)
		return -EINVAL;
	if (!groups)
		return -ENOMEM;
	if (!pw || getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
		n = 0; /* with more than FEW_GROUPS: none */
	*out = (struct creds){.uid = uid, .gid = pw ? pw->pw_gid : NOBODY, .ngroups = (size_t)n};
	out->groups = TAKE_PTR(groups);
	return 0;
}

struct creds creds_of_nobody(void)
{
	return (struct creds){.uid = NOBODY, .gid = NOBODY};
}

bool creds_same(const struct creds *a, const struct creds *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->caps == b->caps &&
	       a->ngroups == b->ngroups &&
	       (!a->ngroups || !memcmp(a->groups, b->groups, a->ngroups * sizeof(*a->groups)));
}

void creds_free(struct creds *creds)
{
	free(creds->groups);
	*creds = (struct creds){0};
}

/* ---- taken on: system calls only ------------------------------------------------------------- */

static int set_effective(uint64_t allowed)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		return -errno;
	for (int i = 0; i < 2; i++)
		caps[i].effective = caps[i].permitted & (uint32_t)(allowed >> (32 * i));
	head.pid = 0;
	return syscall(SYS_capset, &head, caps) ? -errno : 0;
}

/* Without CAP_SETGID groups cannot be set, but they may be the right ones. */
static int take_groups(const struct creds *creds)
{
	gid_t ours[FEW_GROUPS];
	long n;

	if (!syscall(SYS_setgroups, creds->ngroups, creds->groups))
		return 0;
	n = syscall(SYS_getgroups, FEW_GROUPS, ours);
	if (n < 0 || (size_t)n != creds->ngroups)
		return -EPERM;
	for (long i = 0; i < n; i++) {
		bool there = false;

		for (long k = 0; k < n; k++)
			there = there || creds->groups[k] == ours[i];
		if (!there)
			return -EPERM;
	}
	return 0;
}

/* These calls return the former ID, whether they succeed or not. */
static int take_id(long nr, uint32_t id)
{
	syscall(nr, id);
	return (uint32_t)syscall(nr, NO_ID) == id ? 0 : -EPERM;
}

int creds_become(const struct creds *creds)
{
	int err = set_effective(UINT64_MAX);

	if (!err)
		err = take_groups(creds);
	if (!err)
		err = take_id(SYS_setfsgid, creds->gid);
	if (!err)
		err = take_id(SYS_setfsuid, creds->uid);
	/* last, as a change of the user changes what is in effect */
	return err ? err : set_effective(creds->caps);
}

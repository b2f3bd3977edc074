// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls, not glibc's setgroups(): that one changes all threads. setfsuid() and setfsgid()
 * return no error, only the ID before: (uid_t)-1 changes nothing, so that it reads the ID.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

#include "base/fsids.h"
#include "base/sudo.h"

static struct fsids *fsids_new(uid_t uid, gid_t gid, int ngroups)
{
	struct fsids *ids = malloc(sizeof(*ids) + (size_t)ngroups * sizeof(gid_t));

	if (!ids)
		return NULL;
	ids->uid = uid;
	ids->gid = gid;
	ids->ngroups = ngroups;
	return ids;
}

int fsids_of_user(uid_t uid, gid_t gid, struct fsids **out)
{
	const struct passwd *pw = getpwuid(uid);
	struct fsids *ids;
	gid_t first;
	int n = 1;

	if (pw)
		getgrouplist(pw->pw_name, gid, &first, &n); /* n: how many there are */
	ids = fsids_new(uid, gid, n);
	if (!ids)
		return -ENOMEM;
	ids->groups[0] = gid;
	if (pw && getgrouplist(pw->pw_name, gid, ids->groups, &ids->ngroups) < 0) {
		free(ids);
		return -EAGAIN; /* there are more now */
	}
	*out = ids;
	return 0;
}

static struct fsids *fsids_copy(const struct fsids *ids)
{
	struct fsids *copy = fsids_new(ids->uid, ids->gid, ids->ngroups);

	if (copy)
		memcpy(copy->groups, ids->groups, (size_t)ids->ngroups * sizeof(gid_t));
	return copy;
}

/* Caches the result: a confined process can only read /etc/passwd and /etc/group. */
int fsids_of_caller(struct fsids **out, struct error *err)
{
	static struct fsids *known;
	struct sudo_caller caller;
	int ret = sudo_caller(&caller, err);

	if (ret <= 0)
		return ret;
	ret = 0;
	if (!known || known->uid != caller.uid || known->gid != caller.gid) {
		free(TAKE_PTR(known));
		ret = fsids_of_user(caller.uid, caller.gid, &known);
	}
	if (!ret)
		*out = fsids_copy(known);
	if (!ret && !*out)
		ret = -ENOMEM;
	return ret ? error_set(err, ret, "the groups of user %u: %s", caller.uid, strerror(-ret))
		   : 0;
}

static int set_ids(const struct fsids *ids)
{
	setfsgid(ids->gid);
	setfsuid(ids->uid);
	return (uid_t)setfsuid(-1) == ids->uid && (gid_t)setfsgid(-1) == ids->gid ? 0 : -EPERM;
}

static int set_groups(const struct fsids *ids)
{
	return syscall(SYS_setgroups, ids->ngroups, ids->groups) ? -errno : 0;
}

static struct fsids *own_ids(void)
{
	int n = getgroups(0, NULL);
	struct fsids *own = fsids_new(setfsuid(-1), setfsgid(-1), n);

	if (own && getgroups(n, own->groups) != n)
		free(TAKE_PTR(own));
	return own;
}

int fsids_enter(const struct fsids *ids, struct fsids **before)
{
	__free struct fsids *own = ids ? own_ids() : NULL;
	int ret;

	if (!ids)
		return 0;
	if (!own)
		return -ENOMEM;
	ret = set_groups(ids);
	if (ret)
		return ret;
	*before = TAKE_PTR(own);
	ret = set_ids(ids);
	if (ret)
		fsids_leave(before);
	return ret;
}

void fsids_leave(struct fsids **before)
{
	if (*before && (set_groups(*before) || set_ids(*before)))
		abort();
	free(TAKE_PTR(*before));
}

// SPDX-License-Identifier: BSD-2-Clause
/* luabpf_new(3): a recording and its targets. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "recording.h"

luabpf *luabpf_new(void)
{
	luabpf *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->owner = getpid();
	r->follow = true;
	return r;
}

static int no_memory(luabpf *r)
{
	return error_set(&r->error, -ENOMEM, "out of memory");
}

/* Targets and options are set before the start. */
static int check_new(luabpf *r)
{
	int err = recording_check(r);

	if (!err && r->state != RECORDING_NEW)
		return error_set(&r->error, -EBUSY, "this recording has begun");
	return err;
}

int luabpf_attach(luabpf *r, int pid)
{
	int err = check_new(r);

	if (err)
		return err;
	if (pid <= 0)
		return error_set(&r->error, -EINVAL, "%d is not the number of a process", pid);
	if (r->everywhere)
		return error_set(&r->error, -EINVAL, "pid %d: all processes are targets", pid);
	for (size_t i = 0; i < r->npids; i++)
		if (r->pids[i] == pid)
			return 0;
	if (array_grow(&r->pids, r->npids, sizeof(*r->pids)))
		return no_memory(r);
	r->pids[r->npids++] = pid;
	return 0;
}

int luabpf_attach_all(luabpf *r)
{
	int err = check_new(r);

	if (err)
		return err;
	if (r->npids)
		return error_set(&r->error, -EINVAL, "pid %d is a target: name it, or all",
				 (int)r->pids[0]);
	r->everywhere = true;
	return 0;
}

static int add_user(luabpf *r, const char *number)
{
	unsigned long uid;
	char *end;

	errno = 0;
	uid = strtoul(number, &end, 10);
	if (!isdigit((unsigned char)*number) || *end || errno || uid >= UINT_MAX)
		return error_set(&r->error, -EINVAL, "'%s' is not the number of a user", number);
	if (array_grow(&r->uids, r->nuids, sizeof(*r->uids)))
		return no_memory(r);
	r->uids[r->nuids++] = (uid_t)uid;
	return 0;
}

int luabpf_narrow(luabpf *r, int kind, const char *value)
{
	struct words *const words[] = {
		[LUABPF_EXE] = &r->exes, [LUABPF_COMM] = &r->comms, [LUABPF_CGROUP] = &r->cgroups};
	int err = check_new(r);

	if (err)
		return err;
	if (!value || !*value)
		return error_set(&r->error, -EINVAL, "nothing to narrow the processes by");
	if (kind == LUABPF_USER)
		return add_user(r, value);
	if (kind < LUABPF_EXE || kind > LUABPF_CGROUP)
		return error_set(&r->error, -EINVAL, "%d is nothing to narrow processes by", kind);
	return words_add(words[kind], value) ? no_memory(r) : 0;
}

int luabpf_set(luabpf *r, int option, int value)
{
	bool *const options[] = {[LUABPF_FOLLOW] = &r->follow,
				 [LUABPF_CHILDREN] = &r->children,
				 [LUABPF_ZONES] = &r->zones,
				 [LUABPF_COROUTINES] = &r->coroutines};
	int err = check_new(r);

	if (err)
		return err;
	if (option < LUABPF_FOLLOW || option > LUABPF_COROUTINES)
		return error_set(&r->error, -EINVAL, "%d is no option", option);
	*options[option] = value != 0;
	return 0;
}

int luabpf_zone_from(luabpf *r, const char *module)
{
	int err = check_new(r);

	if (err)
		return err;
	words_free(&r->zone_from);
	if (words_add(&r->zone_from, module))
		return no_memory(r);
	r->zones = true;
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
#include "keepers.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utlist.h>

#include "base/cleanup.h"

struct keeper {
	int event;		/* -1: given up */
	struct keeper *sibling; /* of the same process, which owns the list */
	struct keeper *prev, *next;
};

#define SPARE 64 /* descriptors kept for other files */

static bool is_spare(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + SPARE < limit.rlim_cur;
}

void keepers_add(struct keepers *ks, pid_t tid, struct keeper **of_process)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_hv = 1,
	};
	struct keeper *k;
	int fd __close =
		(int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || ks->given_up || !is_spare(fd))
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->event = TAKE_FD(fd);
	k->sibling = *of_process;
	*of_process = k;
	DL_APPEND(ks->all, k);
}

void keepers_drop(struct keepers *ks, struct keeper **of_process)
{
	struct keeper *k;

	while ((k = *of_process)) {
		*of_process = k->sibling;
		DL_DELETE(ks->all, k);
		cleanup_fd(&k->event);
		free(k);
	}
}

bool keepers_give_up(struct keepers *ks)
{
	struct keeper *k;

	if (!ks->all || ks->given_up)
		return false;
	DL_FOREACH(ks->all, k)
	{
		cleanup_fd(&k->event);
	}
	ks->given_up = true;
	return true;
}

void keepers_make_room(struct keepers *ks, int fd)
{
	if (ks->all && !is_spare(fd))
		keepers_give_up(ks);
}

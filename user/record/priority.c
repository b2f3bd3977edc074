// SPDX-License-Identifier: BSD-2-Clause
#include "priority.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proc/process.h"

#define OPENING (-10)
#define CHILDREN_MOST 64

int priority_raise(void)
{
	int before;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	if (errno || before <= OPENING || setpriority(PRIO_PROCESS, 0, OPENING))
		return PRIORITY_KEPT;
	return before;
}

void priority_restore(int before)
{
	pid_t children[CHILDREN_MOST];
	size_t n;

	if (before == PRIORITY_KEPT)
		return;
	setpriority(PRIO_PROCESS, 0, before);
	n = process_children(getpid(), children, CHILDREN_MOST);
	for (size_t i = 0; i < n; i++)
		setpriority(PRIO_PROCESS, (id_t)children[i], before);
}

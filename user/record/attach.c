// SPDX-License-Identifier: BSD-2-Clause
#include "attach.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "proc/process.h"

struct attach_ctx {
	struct loader *loader;
	struct process *process;
	struct loader_attach how;
	pid_t *tids;
	size_t n;
	bool grew;
	struct error *err;
};

static int attach_thread(void *arg, pid_t tid)
{
	struct attach_ctx *c = arg;
	size_t i;
	int r;

	for (i = 0; i < c->n; i++)
		if (c->tids[i] == tid)
			return 0;
	if (array_grow(&c->tids, c->n, sizeof(*c->tids)))
		return error_set(c->err, -ENOMEM, "out of memory");
	c->tids[c->n++] = tid;
	c->grew = true;
	c->how.tid = tid;
	loader_keep_time(c->loader, tid, &c->process->keepers);
	r = loader_attach(c->loader, &c->how, c->err);
	return r == -ESRCH ? 0 : r; /* this thread has ended meanwhile */
}

int attach_process(struct loader *loader, struct process *p, bool children, bool doubled,
		   struct error *err)
{
	struct attach_ctx c = {
		.loader = loader,
		.process = p,
		.how = {.children = children, .doubled = doubled},
		.grew = true,
		.err = err,
	};
	int r = 0;

	while (c.grew && !r) {
		c.grew = false;
		r = process_threads(p->pid, attach_thread, &c);
		c.how.doubled = true;
	}
	free(c.tids);
	if (r == -ESRCH)
		error_set(err, r, "pid %d: the process has ended", (int)p->pid);
	return r;
}

struct keep_ctx {
	struct loader *loader;
	struct process *process;
};

static int keep_time_of(void *arg, pid_t tid)
{
	const struct keep_ctx *c = arg;

	loader_keep_time(c->loader, tid, &c->process->keepers);
	return 0;
}

void attach_keep_time(struct loader *loader, struct process *p)
{
	struct keep_ctx c = {loader, p};

	process_threads(p->pid, keep_time_of, &c);
}

// SPDX-License-Identifier: BSD-2-Clause
#include "process.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

struct process *processes_find(const struct processes *ps, pid_t pid)
{
	struct process *p;

	HASH_FIND_INT(ps->all, &pid, p);
	return p;
}

struct image *processes_image(const struct processes *ps, uint32_t pid, uint32_t epoch)
{
	const struct process *p = processes_find(ps, (pid_t)pid);

	return p && p->epoch == epoch ? p->image : NULL;
}

/* That of an ended process with the same pid, as both are one in the profile; or a new one. */
static struct process *take_struct(struct processes *ps, pid_t pid)
{
	struct process *p;

	HASH_FIND_INT(ps->ended, &pid, p);
	if (p)
		HASH_DEL(ps->ended, p);
	else
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct process){.pid = pid, .pidfd = -1, .sources = p->sources};
	HASH_ADD_INT(ps->all, pid, p);
	if (p->hh.tbl)
		return p;
	sources_drop(&p->sources);
	free(p);
	return NULL;
}

int processes_add(struct processes *ps, pid_t pid, bool may_have_ended, struct process **out)
{
	int fd __close = (int)syscall(SYS_pidfd_open, pid, 0);
	struct process *p;

	if (fd < 0 && !(errno == ESRCH && may_have_ended))
		return -errno;
	p = take_struct(ps, pid);
	if (!p)
		return -ENOMEM;
	p->pidfd = TAKE_FD(fd);
	*out = p;
	return 0;
}

int processes_set_image(struct processes *ps, struct process *p, uint32_t epoch, bool later)
{
	int r;

	if (p->image && p->epoch == epoch)
		return 0;
	image_free(&p->image);
	p->epoch = epoch;
	r = image_new(ps->symbolizer, p->pid, &p->image);
	if (!r && !later)
		image_learn(p->image);
	return r;
}

void processes_end(struct processes *ps, struct process *p)
{
	sources_ended(&ps->ended_sources, &p->sources);
	HASH_DEL(ps->all, p);
	ps->nroots -= p->is_root;
	loader_drop_proc(ps->loader, p->pid);
	loader_drop_modules(ps->loader, &p->vms);
	vm_modules_free(&p->modules);
	loader_drop_keepers(ps->loader, &p->keepers);
	cleanup_fd(&p->pidfd); /* leaves an epoll set, too */
	image_free(&p->image);
	if (p->sources.held)
		HASH_ADD_INT(ps->ended, pid, p);
	if (p->sources.held && p->hh.tbl)
		return;
	sources_drop(&p->sources);
	free(p);
}

void processes_forget_ended(struct processes *ps)
{
	struct process *p, *next;

	HASH_ITER (hh, ps->ended, p, next) {
		HASH_DEL(ps->ended, p);
		sources_drop(&p->sources);
		free(p);
	}
	for (p = ps->all; p; p = p->hh.next)
		if (p->sources.ended) /* its pid was an ended one's, whose files these are */
			sources_drop(&p->sources);
	ended_sources_free(&ps->ended_sources);
}

void processes_free(struct processes *ps)
{
	struct process *p, *next;

	HASH_ITER (hh, ps->all, p, next)
		processes_end(ps, p);
	processes_forget_ended(ps);
	target_source_free(&ps->files_of_all);
}

// SPDX-License-Identifier: BSD-2-Clause
#include "roots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"
#include "proc/process.h"

int roots_add(struct processes *ps, pid_t pid, struct process **out, struct error *err)
{
	int r = processes_add(ps, pid, false, out);

	if (r)
		return error_set(err, r, "pid %d: %s", (int)pid, strerror(-r));
	(*out)->is_root = true;
	ps->nroots++;
	return 0;
}

/*
 * Adds the children of all roots that are not there yet, and theirs: the table grows as it is gone
 * through. They may lack Lua. luabpf itself may be one of them.
 */
static int add_children(struct targets *ts, struct error *err)
{
	pid_t *pids __free = calloc(LB_PROCS, sizeof(*pids));
	struct process *t, *child;
	int r;

	if (!pids)
		return error_set(err, -ENOMEM, "out of memory");
	for (t = ts->processes.all; t; t = t->hh.next) {
		size_t n = process_children(t->pid, pids, LB_PROCS);

		for (size_t i = 0; i < n; i++) {
			if (pids[i] == getpid() || processes_find(&ts->processes, pids[i]))
				continue;
			r = roots_add(&ts->processes, pids[i], &child, err);
			if (!r)
				targets_recognise(ts, child, 0, NULL);
			else if (r != -ESRCH)
				return r;
		}
	}
	return 0;
}

static bool any_has_vm(const struct targets *ts)
{
	for (const struct process *t = ts->processes.all; t; t = t->hh.next)
		if (t->vms.nmodules)
			return true;
	return false;
}

/* again: those that were found late; they may have inherited events. */
static int attach_roots(struct targets *ts, const struct roots *roots, bool again,
			struct error *err)
{
	int r = loader_wait_families(ts->processes.loader, err);
	struct process *t;

	for (t = ts->processes.all; t && !r; t = t->hh.next) {
		if (t->keeps_time)
			continue;
		r = attach_process(ts->processes.loader, t, roots->follow, again, err);
		t->keeps_time = true;
		if (r == -ESRCH && roots->children)
			r = 0;
	}
	return r;
}

/* True if it may have Lua later: it has none, or is amid an exec. */
static bool is_later(pid_t pid, int r)
{
	return r == -ENODATA || (r == -ESRCH && !process_check(pid, NULL));
}

/* lack: set if one of them has no Lua, which may be in its children. */
static int add_named(struct targets *ts, const struct roots *roots, struct error *lack,
		     struct error *err)
{
	struct process *t;
	int r;

	for (size_t i = 0; i < roots->npids; i++) {
		r = process_check(roots->pids[i], err);
		if (!r)
			r = roots_add(&ts->processes, roots->pids[i], &t, err);
		if (r)
			return r;
		r = targets_recognise(ts, t, 0, err);
		if (r == -ENODATA && roots->children)
			*lack = *err;
		else if (r && !(roots->may_lack && is_later(roots->pids[i], r)))
			return r;
	}
	return 0;
}

int roots_open(struct targets *ts, const struct roots *roots, struct error *err)
{
	struct error lack = {};
	int r = add_named(ts, roots, &lack, err);

	if (!r && roots->children)
		r = add_children(ts, err);
	if (r)
		return r;
	if (*lack.what && !roots->may_lack && !any_has_vm(ts)) {
		*err = lack;
		return -ENODATA;
	}
	r = attach_roots(ts, roots, false, err);
	if (r || !roots->children)
		return r;
	r = add_children(ts, err); /* those that were forked before their parent was attached */
	return r ? r : attach_roots(ts, roots, true, err);
}

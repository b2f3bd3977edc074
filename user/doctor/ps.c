// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "detect/scan.h"
#include "doctor.h"
#include "ps.h"

/* A process that goes on calling exec is shown as it was found last. */
#define TRIES 3

/* Bytes of memory that are searched for VMs: a gigabyte takes about a fifth of a second. */
#define PROCESS_MEMORY (256ULL << 20)
#define ALL_MEMORY (4ULL << 30)

struct ps {
	struct scan *scan;
	const struct narrow *narrow;
	int (*fn)(void *arg, const struct ps_process *process);
	void *arg;
	size_t refused;
	struct budget memory; /* of all processes */
	struct error *err;
};

static void add_vm(void *arg, const struct doctor_module *m)
{
	struct ps_process *p = arg;
	struct ps_vm *vm;

	if (array_grow(&p->vms, p->nvms, sizeof(*p->vms)))
		return;
	vm = &p->vms[p->nvms++];
	vm->build = m->build;
	vm->at = *m->at;
	snprintf(vm->path, sizeof(vm->path), "%s", m->path);
}

/* Unreadable memory clears states.complete. */
static void find_states(struct ps *ps, struct ps_process *p)
{
	struct budget memory = {.remaining = PROCESS_MEMORY, .of = &ps->memory};
	struct vm_file files[LB_MODULES_MOST];

	for (size_t i = 0; i < p->nvms; i++)
		files[i] = (struct vm_file){&p->vms[i].build->build, &p->vms[i].at};
	vm_states_find(p->pid, files, p->nvms, &memory, &p->states);
}

/* -ENODATA: it has no Lua. Other errors are those of scan_process(). */
static int look(struct ps *ps, struct ps_process *p)
{
	int r;

	p->nvms = 0;
	p->problem = (struct error){};
	r = doctor_modules_by(ps->scan, p->pid, add_vm, p, &p->problem);
	if (r && r != -ENOTSUP)
		return r;
	if (!p->nvms && !*p->problem.what)
		return scan_unopened(ps->scan) ? -EACCES : -ENODATA;
	find_states(ps, p);
	cgroup_of(p->pid, &p->cgroup);
	process_command(p->pid, p->command, sizeof(p->command));
	r = process_count_threads(p->pid, &p->threads);
	return r ? r : process_uid(p->pid, &p->uid);
}

static int show_process(struct ps *ps, struct ps_process *p)
{
	uint64_t image;
	int r, tries = 0;

	do {
		image = process_image(p->pid);
		if (!narrow_process(ps->narrow, p->pid))
			return 0;
		r = look(ps, p);
	} while (image != process_image(p->pid) && ++tries < TRIES);
	if (!r)
		return ps->fn(ps->arg, p);
	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM) {
		*ps->err = p->problem;
		return r;
	}
	ps->refused += r == -EACCES || r == -EPERM;
	return 0;
}

static int show(void *arg, pid_t pid)
{
	struct ps_process p = {.pid = pid};
	int r = show_process(arg, &p);

	free(p.vms);
	return r;
}

int ps_each(const struct narrow *narrow, int (*fn)(void *arg, const struct ps_process *process),
	    void *arg, size_t *refused, struct error *err)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	struct ps ps = {.narrow = narrow,
			.fn = fn,
			.arg = arg,
			.memory = {.remaining = ALL_MEMORY},
			.err = err};
	int r;

	if (process_check_namespace(err) == -ENOENT)
		return -ENOENT;
	*err = (struct error){}; /* processes of this container are listed by its numbers */
	r = scan_new(&scan);
	if (r)
		return error_set(err, r, "out of memory");
	ps.scan = scan;
	r = process_each(show, &ps);
	*refused = ps.refused;
	if (r && !*err->what)
		error_set(err, r, "/proc: %s", strerror(-r));
	return r;
}

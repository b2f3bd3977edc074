// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "target/elf.h"
#include "target/process.h"
#include "lj_recognise.h"
#include "puc_recognise.h"
#include "scan.h"

#define NO_BUILD (-1)
#define UNSAMPLED_BUILD (-2) /* unknown, or one too many */

/* What a file holds. */
struct scanned {
	struct process_file key;
	int build;	  /* index, or NO_BUILD, UNSAMPLED_BUILD */
	struct error err; /* for UNSAMPLED_BUILD */
	UT_hash_handle hh;
};

struct scan {
	struct scanned *files;
	struct vm_build *builds[LB_BUILDS];
	uint32_t nbuilds;
};

int scan_new(struct scan **out)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*out = s;
	return 0;
}

void scan_free(struct scan **scan)
{
	struct scan *s = *scan;
	struct scanned *f, *tmp;
	uint32_t i;

	if (!s)
		return;
	HASH_ITER (hh, s->files, f, tmp) {
		HASH_DEL(s->files, f);
		free(f);
	}
	for (i = 0; i < s->nbuilds; i++)
		free(s->builds[i]);
	free(s);
	*scan = NULL;
}

const struct vm_build *scan_build(const struct scan *s, uint32_t index)
{
	return index < s->nbuilds ? s->builds[index] : NULL;
}

/* Two files may hold the same build: their VMs then lie at the same addresses. */
static int add_build(struct scan *s, const struct vm_build *b, struct error *err)
{
	uint32_t i;

	for (i = 0; i < s->nbuilds; i++)
		if (s->builds[i]->name == b->name && s->builds[i]->start == b->start &&
		    !memcmp(&s->builds[i]->build, &b->build, sizeof(b->build)))
			return (int)i;
	if (s->nbuilds == LB_BUILDS) {
		error_set(err, -ENOSPC, "it is not sampled: %d other builds of VMs are known",
			  LB_BUILDS);
		return UNSAMPLED_BUILD;
	}
	s->builds[s->nbuilds] = malloc(sizeof(*b));
	if (!s->builds[s->nbuilds]) {
		error_set(err, -ENOMEM, "it is not sampled: out of memory");
		return UNSAMPLED_BUILD;
	}
	*s->builds[s->nbuilds] = *b;
	return (int)s->nbuilds++;
}

/* -EMFILE, -ENFILE: the file could not be looked into, which says nothing of what it holds. */
static int look_into(struct scan *s, int fd, struct scanned *f)
{
	struct elf_file *elf __cleanup(elf_close) = NULL;
	struct vm_build b;
	int r;

	f->build = NO_BUILD;
	r = elf_open_fd(fd, &elf);
	if (r == -EMFILE || r == -ENFILE)
		return r;
	if (r)
		return 0;
	r = lj_recognise(elf, &b, &f->err);
	if (r == -ENOENT)
		r = puc_recognise(elf, &b, &f->err);
	if (r == -ENOTSUP)
		f->build = UNSAMPLED_BUILD;
	if (r || elf_offset(elf, b.start, &b.offset))
		return 0;
	f->build = add_build(s, &b, &f->err);
	return 0;
}

static struct scanned *scan_file(struct scan *s, pid_t pid, const struct process_mapping *m,
				 int *error)
{
	struct process_file key;
	struct scanned *f;
	int fd __close = -1;
	int r;

	if (process_file(pid, m, &key))
		return NULL;
	HASH_FIND(hh, s->files, &key, sizeof(key), f);
	if (f)
		return f;
	fd = process_open_mapping(pid, m);
	if (fd == -EMFILE || fd == -ENFILE)
		*error = fd;
	if (fd < 0)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->key = key;
	r = look_into(s, fd, f);
	if (r) {
		*error = r;
		free(f);
		return NULL;
	}
	HASH_ADD(hh, s->files, key, sizeof(f->key), f);
	if (!f->hh.tbl) {
		free(f);
		return NULL;
	}
	return f;
}

struct scan_ctx {
	struct scan *scan;
	pid_t pid;
	struct lb_proc *proc;
	const struct error *unknown;
	struct error crowded;
	int error; /* that hinders all files, not one */
	char unknown_path[256];
};

static int scan_mapping(void *arg, const struct process_mapping *m)
{
	struct scan_ctx *c = arg;
	struct scanned *f = scan_file(c->scan, c->pid, m, &c->error);
	struct lb_module *module;
	const struct vm_build *b;
	uint64_t vm;

	if (!f || f->build == NO_BUILD)
		return 0;
	if (c->proc->nmodules == LB_MODULES) {
		error_set(&c->crowded, -ENOSPC, "it is not sampled: %d other files hold a VM",
			  LB_MODULES);
		c->unknown = &c->crowded;
		snprintf(c->unknown_path, sizeof(c->unknown_path), "%s", m->path);
		return 0;
	}
	if (f->build == UNSAMPLED_BUILD) {
		c->unknown = &f->err;
		snprintf(c->unknown_path, sizeof(c->unknown_path), "%s", m->path);
		return 0;
	}
	b = c->scan->builds[f->build];
	/* the VM lies in one of the file's executable mappings */
	vm = m->start + (b->offset - m->offset);
	if (b->offset < m->offset || vm + b->size > m->end)
		return 0;
	module = &c->proc->module[c->proc->nmodules++];
	module->vm_start = vm;
	module->vm_end = module->vm_start + b->size;
	module->text_lo = m->start;
	module->text_hi = m->end;
	module->gc_lo = b->gc_lo ? vm + (b->gc_lo - b->start) : 0;
	module->gc_hi = b->gc_lo ? vm + (b->gc_hi - b->start) : 0;
	module->build = (uint32_t)f->build;
	module->family = b->build.family;
	c->proc->families |= 1u << module->family;
	return 0;
}

int scan_process(struct scan *s, pid_t pid, struct lb_proc *proc, struct error *err)
{
	struct scan_ctx c = {.scan = s, .pid = pid, .proc = proc};
	int r;

	proc->nmodules = 0;
	proc->families = 0;
	r = process_mappings(pid, scan_mapping, &c);
	if (r == -ESRCH)
		return error_set(err, r, "pid %d: no such process", (int)pid);
	if (r) {
		error_set(err, r, "pid %d: cannot read its mappings: %s", (int)pid, strerror(-r));
		return error_remedy(err, r, "run as root, or with CAP_SYS_PTRACE");
	}
	if (c.error)
		return error_set(err, c.error,
				 "pid %d: cannot open its files: %s; ulimit -n raises the limit",
				 (int)pid, strerror(-c.error));
	if (c.unknown) { /* beside one that is known, it is a warning */
		error_set(err, -ENOTSUP, "%s (in pid %d): %s", c.unknown_path, (int)pid,
			  c.unknown->what);
		return proc->nmodules ? 0 : -ENOTSUP;
	}
	return 0;
}

static bool has_lua(struct scan *s, pid_t pid)
{
	struct lb_proc proc = {};
	struct error ignored = {};

	return !scan_process(s, pid, &proc, &ignored) && proc.nmodules;
}

void scan_no_lua_remedy(struct scan *s, pid_t pid, struct text *remedy)
{
	pid_t children[PROCESS_WORKERS];
	size_t all = process_children(pid, children, PROCESS_WORKERS), n = 0;

	for (size_t i = 0; i < all; i++)
		if (has_lua(s, children[i]))
			children[n++] = children[i];
	if (!n) {
		text_puts(remedy, all ? "nor in its children: " : "");
		text_puts(remedy, "name the process that runs it");
		return;
	}
	text_puts(remedy, n == 1 ? "a child of it has: -p " : "children of it have: -p ");
	process_put_pids(remedy, children, n);
}

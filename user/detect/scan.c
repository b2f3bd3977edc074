// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/signals.h"
#include "base/text.h"
#include "proc/elf.h"
#include "proc/process.h"
#include "detect/lj/recognise.h"
#include "detect/puc/recognise.h"
#include "scan.h"

#define NO_BUILD (-1)
#define UNSAMPLED_BUILD (-2) /* unknown, or beyond a limit */

/* The result for one file. */
struct scanned {
	struct process_file key;
	int build;		   /* index, or NO_BUILD, UNSAMPLED_BUILD */
	struct error *err;	   /* for UNSAMPLED_BUILD; owned */
	bool unsure;		   /* for UNSAMPLED_BUILD: it may hold no Lua */
	uint64_t map_dev, map_ino; /* of its mapping */
	UT_hash_handle hh;
};

/*
 * Budgets for the files of one process, and of all. Each file is scanned once: only a process that
 * keeps mapping new ones comes near the bound. Each file costs OPEN_STEPS at least, which bounds
 * their number, too. A recording may last for weeks: the budget of all is for an hour.
 */
#define PROCESS_WORK (2ULL << 30)
#define ALL_WORK (16ULL << 30)
#define MOST_SPENDERS 4096 /* the oldest are forgotten, and files that hold no VM */
#define MOST_FILES 65536
#define OPEN_STEPS (256u << 10)
#define MAX_MAPPINGS 8192 /* of files, in one process */

struct spender {
	pid_t pid;
	uint64_t start; /* process_start() */
	struct budget work;
	UT_hash_handle hh;
};

struct scan {
	struct budget work;
	struct spender *spenders;
	struct scanned *files;
	struct scanned *given; /* the last that scan_next_file() returned; NULL */
	struct vm_build *builds[LB_BUILDS];
	uint32_t nbuilds;
	uint64_t mapped;			   /* process_mapped() of the last process */
	struct lb_module modules[LB_MODULES_MOST]; /* of the last process */
	uint32_t unopened;			   /* files of the last process */
	char *unopened_path;			   /* of one of them; NULL */
	uint64_t filled_ns;			   /* when work was filled up, CLOCK_MONOTONIC */
};

int scan_new(struct scan **out)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->work = (struct budget){.remaining = ALL_WORK,
				  .of_what = "the files of all processes",
				  .until_signal = true};
	s->filled_ns = clock_ns(CLOCK_MONOTONIC);
	*out = s;
	return 0;
}

static void free_scanned(struct scanned **f)
{
	if (*f)
		free((*f)->err);
	free(*f);
	*f = NULL;
}

static void forget(struct scan *s, struct scanned *f)
{
	HASH_DEL(s->files, f);
	free_scanned(&f);
}

void scan_free(struct scan **scan)
{
	struct scan *s = *scan;
	struct spender *p, *next;
	struct scanned *f, *tmp;
	uint32_t i;

	if (!s)
		return;
	HASH_ITER (hh, s->spenders, p, next) {
		HASH_DEL(s->spenders, p);
		free(p);
	}
	HASH_ITER (hh, s->files, f, tmp)
		forget(s, f);
	for (i = 0; i < s->nbuilds; i++)
		free(s->builds[i]);
	free(s->unopened_path);
	free(s);
	*scan = NULL;
}

const struct vm_build *scan_build(const struct scan *s, uint32_t index)
{
	return index < s->nbuilds ? s->builds[index] : NULL;
}

uint64_t scan_mapped(const struct scan *s)
{
	return s->mapped;
}

const struct lb_module *scan_modules(const struct scan *s)
{
	return s->modules;
}

uint32_t scan_unopened(const struct scan *s)
{
	return s->unopened;
}

size_t scan_files(const struct scan *s, size_t *builds)
{
	*builds = s->nbuilds;
	return HASH_COUNT(s->files);
}

bool scan_next_file(struct scan *s, struct lb_file_key *key, struct lb_file *file)
{
	struct scanned *f = s->given ? s->given->hh.next : s->files;
	const struct vm_build *b;

	for (; f && f->build == UNSAMPLED_BUILD; f = f->hh.next)
		s->given = f;
	if (!f)
		return false;
	s->given = f;
	*key = (struct lb_file_key){
		.dev = (uint64_t)major(f->map_dev) << 20 | minor(f->map_dev),
		.ino = f->map_ino,
		.mtime = f->key.mtime,
		.mtime_ns = f->key.mtime_ns,
	};
	*file = (struct lb_file){};
	if (f->build == NO_BUILD)
		return true;
	b = s->builds[f->build];
	*file = (struct lb_file){
		.offset = b->offset,
		.size = b->size,
		.gc_lo = b->gc_lo ? b->gc_lo - b->start : 0,
		.gc_hi = b->gc_lo ? b->gc_hi - b->start : 0,
		.build = (uint32_t)f->build,
		.family = b->build.family,
	};
	return true;
}

/* Returns the build's index. Files that hold the same build at the same address share one. */
static int add_build(struct scan *s, const struct vm_build *b, struct error *err)
{
	uint32_t i;

	for (i = 0; i < s->nbuilds; i++)
		if (!strcmp(s->builds[i]->name, b->name) &&
		    !strcmp(s->builds[i]->release, b->release) && s->builds[i]->start == b->start &&
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

/* Returns the process's budget; processes that map no new file have none. NULL: no memory. */
static struct budget *budget_of(struct scan *s, pid_t pid)
{
	uint64_t start = process_start(pid);
	struct spender *p;

	HASH_FIND_INT(s->spenders, &pid, p);
	if (p && p->start == start)
		return &p->work;
	if (!p && HASH_COUNT(s->spenders) >= MOST_SPENDERS)
		p = s->spenders;
	if (p)
		HASH_DEL(s->spenders, p);
	else
		p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct spender){.pid = pid, .start = start};
	p->work = (struct budget){
		.remaining = PROCESS_WORK, .of = &s->work, .of_what = "the files of this process"};
	HASH_ADD_INT(s->spenders, pid, p);
	if (!p->hh.tbl) {
		free(p);
		return NULL;
	}
	return &p->work;
}

static void recognise(struct scan *s, struct elf_file *elf, struct scanned *f, struct error *err)
{
	struct vm_build b;
	int r = lj_recognise(elf, &b, err);

	if (r == -ENOENT)
		r = puc_recognise(elf, &b, err);
	if (r == -ENOTSUP)
		f->build = UNSAMPLED_BUILD;
	if (!r && !elf_offset(elf, b.start, &b.offset))
		f->build = add_build(s, &b, err);
}

/*
 * After an error nothing is known of the file. -EMFILE, -ENFILE: no descriptor is free. -EDQUOT:
 * the budget of the process, or of all, is used up. -EINTR: a signal has ended the recording.
 */
static int look_into(struct scan *s, int fd, struct budget *work, struct scanned *f,
		     struct error *err)
{
	struct elf_file *elf __cleanup(elf_close) = NULL;
	const char *why;
	int r;

	f->build = NO_BUILD;
	r = elf_open_fd(fd, &elf);
	if (r == -EMFILE || r == -ENFILE)
		return r;
	if (!r) {
		elf_charge(elf, work);
		recognise(s, elf, f, err);
		if (signals_caught())
			return -EINTR;
		if (f->build != NO_BUILD || !elf_exceeded(elf))
			return 0;
		if (budget_used_up(work))
			return -EDQUOT;
	}
	why = r ? elf_refused(r) : "looking through it takes more work than is done for one file";
	if (why) {
		f->build = UNSAMPLED_BUILD;
		f->unsure = true;
		error_set(err, -ENOTSUP, "whether it holds a Lua is not known: %s", why);
	}
	return 0;
}

#define REMEMBERED 64 /* files, a power of two */

struct scan_ctx {
	struct scan *scan;
	/* of this process, by mapping: it may have mapped one file ten thousand times */
	struct scanned *remembered[REMEMBERED];
	pid_t pid;
	struct lb_proc *proc;
	uint32_t mappings;
	const struct error *unknown;
	struct error file;     /* of a file, which may be forgotten meanwhile */
	struct error left_out; /* a limit, whatever the file holds */
	int error;	       /* of all files, not one */
	bool is_left_out;      /* unknown is of VMs beyond LB_MODULES_MOST */
	char unknown_path[1024];
};

static void set_unknown(struct scan_ctx *c, const struct process_mapping *m,
			const struct error *why)
{
	c->unknown = why;
	c->is_left_out = false;
	snprintf(c->unknown_path, sizeof(c->unknown_path), "%s", m->path);
}

/* Leaves out a VM beyond LB_MODULES_MOST: the message names all such files. */
static void leave_out(struct scan_ctx *c, const struct process_mapping *m)
{
	size_t used = strlen(c->unknown_path);

	c->proc->unsampled = 1;
	error_set(&c->left_out, -ENOSPC, "it is not sampled: %d other files hold a VM",
		  LB_MODULES_MOST);
	if (c->unknown == &c->left_out && c->is_left_out)
		snprintf(c->unknown_path + used, sizeof(c->unknown_path) - used, ", %s", m->path);
	else
		set_unknown(c, m, &c->left_out);
	c->is_left_out = true;
}

/*
 * Files come and go without end: those without a VM first. One that is forgotten is scanned once
 * more when it is mapped again.
 */
static void forget_oldest(struct scan *s)
{
	struct scanned *f = s->files, *oldest = NULL;

	if (HASH_COUNT(s->files) < MOST_FILES)
		return;
	for (; f && f->build != NO_BUILD; f = f->hh.next)
		if (!oldest && f != s->given)
			oldest = f;
	if (!f || f == s->given)
		f = oldest;
	if (f)
		forget(s, f);
}

static int add_file(struct scan_ctx *c, const struct process_mapping *m,
		    const struct process_file *key, struct budget *work, struct scanned **out)
{
	struct scanned *f __cleanup(free_scanned) = NULL;
	struct error err = {};
	int fd __close = -1;
	int r;

	if (!work)
		return -ENOMEM;
	if (!budget_spend(work, OPEN_STEPS))
		return -EDQUOT;
	fd = process_open_mapping(c->pid, m);
	if (fd < 0)
		return fd;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->key = *key;
	f->map_dev = m->dev;
	f->map_ino = m->ino;
	r = look_into(c->scan, fd, work, f, &err);
	if (r)
		return r;
	if (f->build == UNSAMPLED_BUILD && !(f->err = malloc(sizeof(err))))
		return -ENOMEM;
	if (f->err)
		*f->err = err;
	forget_oldest(c->scan);
	HASH_ADD(hh, c->scan->files, key, sizeof(f->key), f);
	if (!f->hh.tbl)
		return -ENOMEM;
	*out = TAKE_PTR(f);
	return 0;
}

static void note_unopened(struct scan *s, const struct process_mapping *m)
{
	if (!s->unopened++)
		s->unopened_path = strdup(m->path);
}

static struct scanned **remembered(struct scan_ctx *c, const struct process_mapping *m)
{
	return &c->remembered[(m->ino ^ m->dev) & (REMEMBERED - 1)];
}

static struct scanned *scan_file(struct scan_ctx *c, const struct process_mapping *m)
{
	struct process_file key;
	struct budget *work;
	struct scanned *f = *remembered(c, m);
	int r;

	if (f && f->map_dev == m->dev && f->map_ino == m->ino)
		return f;
	r = process_file(c->pid, m, &key);
	if (r == -EREMOTE) {
		error_set(&c->left_out, r,
			  "whether it holds a Lua is not known: its file system waits for a "
			  "user's daemon (FUSE)");
		set_unknown(c, m, &c->left_out);
	}
	if (r && r != -EINVAL)
		note_unopened(c->scan, m);
	if (r)
		return NULL;
	HASH_FIND(hh, c->scan->files, &key, sizeof(key), f);
	if (f) {
		*remembered(c, m) = f;
		return f;
	}
	work = budget_of(c->scan, c->pid);
	memset(c->remembered, 0, sizeof(c->remembered)); /* one may be forgotten for this one */
	r = add_file(c, m, &key, work, &f);
	if (r == -EACCES || r == -EPERM || r == -ENOENT)
		note_unopened(c->scan, m);
	if (r == -EMFILE || r == -ENFILE)
		c->error = r;
	if (r == -EDQUOT) {
		error_set(&c->left_out, r,
			  "whether it holds a Lua is not known: no more work is done for %s",
			  budget_used_up(work));
		set_unknown(c, m, &c->left_out);
	}
	return r ? NULL : f;
}

static int scan_mapping(void *arg, const struct process_mapping *m)
{
	struct scan_ctx *c = arg;
	struct lb_module *module;
	const struct vm_build *b;
	struct scanned *f;
	uint64_t vm;

	if (signals_caught()) /* a process has many files */
		return -EINTR;
	process_add_mapped(&c->scan->mapped, m);
	if (c->mappings > MAX_MAPPINGS)
		return 0;
	if (c->mappings++ == MAX_MAPPINGS) {
		error_set(&c->left_out, -E2BIG,
			  "whether it holds a Lua is not known: %d other mappings come before it",
			  MAX_MAPPINGS);
		set_unknown(c, m, &c->left_out);
		return 0;
	}
	f = scan_file(c, m);
	if (!f || f->build == NO_BUILD)
		return 0;
	if (f->build == UNSAMPLED_BUILD) {
		c->proc->unsampled |= !f->unsure;
		c->file = *f->err;
		set_unknown(c, m, &c->file);
		return 0;
	}
	b = c->scan->builds[f->build];
	/* one of the file's executable mappings has the VM */
	vm = m->start + (b->offset - m->offset);
	if (b->offset < m->offset || vm + b->size > m->end)
		return 0;
	if (c->proc->nmodules == LB_MODULES_MOST) {
		leave_out(c, m);
		return 0;
	}
	module = &c->scan->modules[c->proc->nmodules++];
	*module = (struct lb_module){.id = (uint8_t)(c->proc->nmodules - 1)};
	module->vm_start = vm;
	module->vm_end = module->vm_start + b->size;
	module->text_lo = m->start;
	module->text_hi = m->end;
	module->gc_lo = b->gc_lo ? vm + (b->gc_lo - b->start) : 0;
	module->gc_hi = b->gc_lo ? vm + (b->gc_hi - b->start) : 0;
	module->build = (uint32_t)f->build;
	module->family = (uint8_t)b->build.family;
	c->proc->families |= 1u << module->family;
	return 0;
}

int scan_process(struct scan *s, pid_t pid, struct lb_proc *proc, struct error *err)
{
	struct scan_ctx c = {.scan = s, .pid = pid, .proc = proc};
	size_t n;
	int r;

	budget_refill(&s->work, ALL_WORK, &s->filled_ns);
	proc->nmodules = 0;
	proc->families = 0;
	proc->unsampled = 0;
	s->mapped = 0;
	s->unopened = 0;
	free(TAKE_PTR(s->unopened_path));
	r = process_mappings(pid, scan_mapping, &c, &n);
	if (r)
		s->mapped = 0;
	if (r == -EINTR || signals_caught())
		return -EINTR;
	if (r == -ESRCH)
		return error_set(err, r, "pid %d: no such process", (int)pid);
	if (r < 0) {
		error_set(err, r, "pid %d: cannot read its mappings: %s", (int)pid, strerror(-r));
		return error_remedy(err, r, "run as root, or with CAP_SYS_PTRACE");
	}
	if (c.error)
		return error_set(err, c.error,
				 "pid %d: cannot open its files: %s; ulimit -n raises the limit",
				 (int)pid, strerror(-c.error));
	if (c.unknown) { /* if another VM is sampled, it is a warning */
		error_set(err, -ENOTSUP, "%s (in pid %d): %s", c.unknown_path, (int)pid,
			  c.unknown->what);
		return proc->nmodules ? 0 : -ENOTSUP;
	}
	if (n == PROCESS_MAPPINGS) {
		error_set(err, -ENOTSUP,
			  "pid %d: whether it runs Lua is not known: only the first %d of its "
			  "mappings are looked at",
			  (int)pid, PROCESS_MAPPINGS);
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

/* The remedy where all its files were looked into. */
static void not_here(struct scan *s, pid_t pid, struct text *remedy)
{
	pid_t children[PROCESS_WORKERS];
	size_t all = process_children(pid, children, PROCESS_WORKERS), n = 0;

	for (size_t i = 0; i < all; i++)
		if (has_lua(s, children[i]))
			children[n++] = children[i];
	if (!n) {
		text_puts(remedy, all ? "nor in its children: " : "");
		text_puts(remedy,
			  "name the process that runs it, or wait until this one, or what it "
			  "starts, does: --wait");
		return;
	}
	text_puts(remedy, n == 1 ? "a child of it has: -p " : "children of it have: -p ");
	process_put_pids(remedy, children, n);
}

void scan_no_lua(struct scan *s, pid_t pid, struct error *err)
{
	int missing = s->unopened ? caps_missing(CAPS_FILES) : 0;
	__text struct text remedy = {0};
	char names[128];

	if (missing > 0) {
		error_set(err, 0, "cannot open %s, so Lua in this process may be missed",
			  s->unopened_path ?: "a file");
		error_remedy(err, 0, "run as root (sudo luabpf ...), or give luabpf %s, too",
			     caps_names((unsigned)missing, names, sizeof(names)));
		return;
	}
	not_here(s, pid, &remedy);
	error_set(err, 0, "no Lua in this process");
	error_remedy(err, 0, "%s", text_str(&remedy));
}

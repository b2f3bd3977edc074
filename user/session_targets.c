// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel does not tell us of a library that a process loads. So each process's mappings are
 * looked at again, often while its image is young: a program loads most of what it needs as it
 * starts.
 */
#include "session_targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/process.h"

#define MS 1000000ULL
#define YOUNG_NS (2000 * MS)
#define LOOK_NS (180 * MS) /* between two looks at one that is not: at the next round then */

struct target *targets_find(struct targets *ts, pid_t pid)
{
	size_t i;

	for (i = 0; i < ts->n; i++)
		if (ts->all[i].pid == pid && !ts->all[i].ended)
			return &ts->all[i];
	return NULL;
}

/* A place for one more: that of one that has ended, or a new one. Roots keep theirs. */
static struct target *free_target(struct targets *ts)
{
	struct target *p;
	size_t i;

	for (i = ts->nroots; i < ts->n; i++)
		if (ts->all[i].ended)
			return &ts->all[i];
	p = realloc(ts->all, (ts->n + 1) * sizeof(*p));
	if (!p)
		return NULL;
	ts->all = p;
	p[ts->n] = (struct target){.pidfd = -1, .ended = true};
	return &p[ts->n++];
}

int targets_add(struct targets *ts, pid_t pid, struct target **out)
{
	struct target *t = free_target(ts);
	int fd;

	if (!t)
		return -ENOMEM;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	*t = (struct target){.pid = pid, .pidfd = fd};
	*out = t;
	return 0;
}

int targets_adopt(struct targets *ts, const struct lb_rec_task *rec, struct target **out)
{
	pid_t pid = (pid_t)rec->pid;
	int fd __close = -1, r;
	struct lb_proc proc;
	struct target *t;

	r = loader_get_proc(ts->loader, pid, &proc);
	if (r)
		return r;
	if (proc.exec_id != rec->exec_id) /* it has called exec since */
		return -ESTALE;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && errno != ESRCH)
		return -errno;
	t = free_target(ts);
	if (!t)
		return -ENOMEM;
	r = symbolizer_fork(ts->symbolizer, pid, proc.epoch, (pid_t)rec->origin);
	if (r)
		return r;
	*t = (struct target){.pid = pid, .pidfd = TAKE_FD(fd), .told = true, .proc = proc};
	*out = t;
	return 0;
}

/* BPF learns what files hold, so that it recognises the next process that maps them. */
static void give_files(struct targets *ts)
{
	struct lb_file_key key;
	struct lb_file file;

	while (scan_next_file(ts->scan, &key, &file)) {
		if (file.family && loader_set_build(ts->loader, file.build,
						    &scan_build(ts->scan, file.build)->build))
			continue;
		loader_set_file(ts->loader, &key, &file);
	}
}

static int explain_no_vm(struct scan *scan, pid_t pid, struct error *err)
{
	__text struct text remedy = {0};
	char name[256];

	process_name(pid, name, sizeof(name));
	scan_no_lua_remedy(scan, pid, &remedy);
	error_set(err, -ENODATA, "pid %d, %s: no Lua in this process", (int)pid, name);
	return error_remedy(err, -ENODATA, "%s", text_str(&remedy));
}

/* BPF learns the builds before it learns who has them. */
static int tell(struct targets *ts, const struct target *t, struct error *err)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < t->proc.nmodules && !r; i++) {
		const struct vm_build *b = scan_build(ts->scan, t->proc.module[i].build);

		r = loader_set_build(ts->loader, t->proc.module[i].build, &b->build);
	}
	if (r)
		return error_set(err, r, "BPF map: %s", strerror(-r));
	r = symbolizer_process(ts->symbolizer, t->pid, t->proc.epoch);
	if (!r)
		r = loader_set_proc(ts->loader, t->pid, &t->proc);
	if (r == -E2BIG)
		return error_set(err, r, "pid %d: not sampled: more than %d processes at a time",
				 (int)t->pid, LB_PROCS);
	return r ? error_set(err, r, "pid %d: %s", (int)t->pid, strerror(-r)) : 0;
}

/* Told at the end: the target that it concerns is one of many, or has other VMs. */
static void note_unsampled(struct targets *ts, int r, const struct error *why)
{
	if (*why->what && r != -ESRCH)
		ts->unsampled = *why;
}

static bool has_module(const struct lb_proc *proc, const struct lb_module *m)
{
	uint32_t i;

	for (i = 0; i < proc->nmodules; i++)
		if (!memcmp(&proc->module[i], m, sizeof(*m)))
			return true;
	return false;
}

static void show(const struct targets *ts, const struct target *t, const struct lb_proc *before)
{
	uint32_t i;

	for (i = 0; ts->seen && i < t->proc.nmodules; i++)
		if (!has_module(before, &t->proc.module[i]))
			ts->seen(ts->seen_arg, t->pid, SESSION_VM,
				 scan_build(ts->scan, t->proc.module[i].build), &t->proc.module[i]);
}

int targets_take(struct targets *ts, const struct lb_rec_task *rec, struct target **target)
{
	pid_t pid = (pid_t)rec->pid;
	struct lb_proc proc, none = {};
	struct target *t = *target;
	int fd __close = -1, r;

	/* when it has called exec since, the samples of this image still want names */
	if (loader_get_proc(ts->loader, pid, &proc) || proc.exec_id != rec->exec_id)
		proc = (struct lb_proc){.exec_id = rec->exec_id, .epoch = rec->known};
	if (!t) {
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd < 0 && errno != ESRCH)
			return -errno;
		t = free_target(ts);
		if (!t)
			return -ENOMEM;
		*t = (struct target){.pid = pid, .pidfd = TAKE_FD(fd)};
	}
	r = symbolizer_process(ts->symbolizer, pid, rec->known);
	if (r)
		return r;
	t->told = true;
	t->proc = proc;
	t->image = process_image(pid);
	t->mapped = 0; /* looked at in the next round: what BPF has not found is found then */
	t->look_ns = 0;
	t->young_until = clock_ns(CLOCK_MONOTONIC) + YOUNG_NS;
	show(ts, t, &none);
	*target = t;
	return 0;
}

static bool overlaps(const struct lb_module *a, const struct lb_module *b)
{
	return a->text_lo < b->text_hi && b->text_lo < a->text_hi;
}

/* BPF remembers modules by their places, so those that are known keep theirs. */
static bool add_module(struct targets *ts, struct target *t, const struct lb_module *m)
{
	uint32_t i;

	for (i = 0; i < t->proc.nmodules; i++) {
		struct lb_module *old = &t->proc.module[i];

		if (!memcmp(old, m, sizeof(*m)))
			return false;
		if (overlaps(old, m)) { /* that one was unloaded */
			*old = *m;
			return true;
		}
	}
	if (i == LB_MODULES || !(ts->families & 1u << m->family)) {
		t->proc.unsampled = 1;
		error_set(&ts->unsampled, -ENOTSUP,
			  "pid %d: not sampled: %s was loaded later; begin again to sample it",
			  (int)t->pid, scan_build(ts->scan, m->build)->name);
		return false;
	}
	t->proc.module[t->proc.nmodules++] = *m;
	t->proc.families |= 1u << m->family;
	return true;
}

/* BPF may have recognised this image meanwhile: what it found keeps its places. */
static void keep_known(struct targets *ts, struct target *t)
{
	struct lb_proc now = t->proc, known;
	uint32_t i;

	if (loader_get_proc(ts->loader, t->pid, &known) || !known.nmodules ||
	    known.exec_id != now.exec_id || known.epoch != now.epoch)
		return;
	t->proc = known;
	t->proc.unsampled |= now.unsampled;
	for (i = 0; i < now.nmodules; i++)
		add_module(ts, t, &now.module[i]);
}

int targets_recognise(struct targets *ts, struct target *t, uint64_t exec_id, struct error *err)
{
	struct error unknown = {}, refused = {};
	uint64_t image = process_image(t->pid);
	const struct target was = *t;
	struct lb_proc before = t->proc;
	int r, r2;

	if (image != t->image) /* all of its VMs are new */
		before = (struct lb_proc){};
	t->image = image;
	t->mapped = process_mapped(t->pid); /* before: what is mapped meanwhile is found later */
	t->young_until = exec_id ? clock_ns(CLOCK_MONOTONIC) + YOUNG_NS : 0;
	t->proc = (struct lb_proc){.exec_id = exec_id};
	t->told = false;
	r = scan_process(ts->scan, t->pid, &t->proc, &unknown);
	give_files(ts);
	t->proc.epoch = exec_id ? LB_EPOCH(exec_id) : ++ts->epochs;
	keep_known(ts, t);
	if (r && err)
		*err = unknown;
	else
		note_unsampled(ts, r, &unknown);
	if (r && r != -ENOTSUP) {
		/* it is amid an exec, perhaps: as BPF has it, until it is looked at again */
		t->proc = was.proc;
		t->told = was.told;
		t->mapped = 0;
		return r;
	}
	if (t->proc.families & ~ts->families)
		error_set(&ts->unsampled, -ENOTSUP,
			  "pid %d: not sampled since it called exec: it runs a Lua of another "
			  "family now; begin again to sample it",
			  (int)t->pid);
	r2 = tell(ts, t, &refused);
	if (r2 && err)
		*err = refused;
	else
		note_unsampled(ts, r2, &refused);
	if (r2)
		return r2;
	t->told = true;
	show(ts, t, &before);
	return !r && !t->proc.nmodules ? explain_no_vm(ts->scan, t->pid, err) : r;
}

/*
 * Nothing of the VMs that were there is: it has called exec, before a sample showed BPF its image.
 */
static bool is_replaced(const struct lb_proc *old, const struct lb_proc *now)
{
	uint32_t i;

	for (i = 0; i < old->nmodules; i++)
		if (has_module(now, &old->module[i]))
			return false;
	return old->nmodules;
}

static void look(struct targets *ts, struct target *t)
{
	struct lb_proc now = {}, told, before = t->proc;
	uint64_t mapped = process_mapped(t->pid);
	struct error unknown = {};
	bool news = false;
	uint32_t i;
	int r;

	if (!mapped || mapped == t->mapped)
		return;
	t->mapped = mapped;
	r = scan_process(ts->scan, t->pid, &now, &unknown);
	give_files(ts);
	note_unsampled(ts, r, &unknown);
	/* of the image that BPF knows: when this is another by now, it asks anew */
	if (loader_get_proc(ts->loader, t->pid, &told))
		return;
	if (!told.exec_id || is_replaced(&t->proc, &now)) {
		targets_recognise(ts, t, told.exec_id, NULL);
		return;
	}
	t->proc.exec_id = told.exec_id;
	t->proc.unsampled |= now.unsampled;
	for (i = 0; i < now.nmodules; i++)
		news |= add_module(ts, t, &now.module[i]);
	news |= t->proc.unsampled != before.unsampled;
	if (news && !tell(ts, t, NULL))
		show(ts, t, &before);
}

void targets_look(struct targets *ts, uint64_t now)
{
	size_t i;

	for (i = 0; i < ts->n; i++) {
		struct target *t = &ts->all[i];

		if (t->ended || now < t->look_ns)
			continue;
		if (t->pidfd < 0) { /* its samples were read before this round */
			targets_end(ts, t);
			continue;
		}
		t->look_ns = now < t->young_until ? now : now + LOOK_NS;
		if (ts->seen)
			ts->seen(ts->seen_arg, t->pid, SESSION_LOOK, NULL, NULL);
		look(ts, t);
	}
}

void targets_share(struct targets *ts)
{
	struct lb_proc known;
	size_t i;

	for (i = 0; i < ts->n; i++) {
		struct target *t = &ts->all[i];
		uint32_t shares;

		if (t->ended)
			continue;
		shares = symbolizer_share(ts->symbolizer, t->pid);
		if (shares == t->proc.shares || loader_get_proc(ts->loader, t->pid, &known) ||
		    known.epoch != t->proc.epoch)
			continue;
		t->proc.shares = shares;
		known.shares = shares; /* with the exec_id that BPF may have adopted */
		loader_set_proc(ts->loader, t->pid, &known);
	}
}

void targets_end(struct targets *ts, struct target *t)
{
	if (ts->seen)
		ts->seen(ts->seen_arg, t->pid, SESSION_LOOK, NULL, NULL);
	t->ended = true;
	cleanup_fd(&t->pidfd); /* leaves an epoll set, too */
	t->pidfd = -1;
	loader_drop_proc(ts->loader, t->pid);
	symbolizer_end(ts->symbolizer, t->pid);
}

void targets_free(struct targets *ts)
{
	size_t i;

	for (i = 0; i < ts->n; i++)
		cleanup_fd(&ts->all[i].pidfd);
	free(ts->all);
	*ts = (struct targets){};
}

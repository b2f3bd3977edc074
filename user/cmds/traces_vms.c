// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recording of traces: a session samples with the coroutine in each row, which says to which VM a
 * sample belongs. The VMs are read every READ_MS, as traces vanish when they are flushed, and all of
 * them at the end of the process.
 */
#include "traces_vms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/caps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/signals.h"
#include "base/uses.h"
#include "output.h"
#include "proc/process.h"
#include "record/session.h"

#define READ_MS 50
#define HEAP_SHARE 20 /* all functions are read for at most a twentieth of the time */
#define THREADS_MOST 100000

/* A coroutine that samples show. */
struct traced_thread {
	struct {
		uint64_t L, of;
	} key;
	struct traced_vm *vm; /* NULL: not found */
	UT_hash_handle hh;
};

static void vm_free(struct traced_vm *t)
{
	traces_vm_free(&t->vm);
	traces_shares_free(&t->shares);
	sources_drop(&t->sources);
	free(t->command);
	free(t);
}

void traced_vms_free(struct traced_vms *vms)
{
	struct traced_thread *thread, *tmp;

	HASH_ITER (hh, vms->threads, thread, tmp) {
		HASH_DEL(vms->threads, thread);
		free(thread);
	}
	for (size_t i = 0; i < vms->n; i++)
		vm_free(vms->at[i]);
	free(vms->at);
	ended_sources_free(&vms->ended);
	luajit_finder_free(&vms->finder);
}

static struct traced_vm *find(const struct traced_vms *vms, pid_t pid, uint64_t g)
{
	for (size_t i = 0; i < vms->n; i++)
		if (vms->at[i]->pid == pid && vms->at[i]->at.g == g)
			return vms->at[i];
	return NULL;
}

/* image: of the process, before the VM was found: its source files are that one's. */
static int add(struct traced_vms *vms, pid_t pid, uint64_t image, const struct luajit_vm *at)
{
	struct traced_vm *t;
	char command[PROCESS_NAME];
	int r;

	if (find(vms, pid, at->g))
		return 0;
	if (array_grow(&vms->at, vms->n, sizeof(*vms->at)))
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->pid = pid;
	t->at = *at;
	mem_remote_init(&t->mem, pid);
	process_command(pid, command, sizeof(command));
	t->command = strdup(command);
	r = t->command ? traces_vm_new(&t->mem.mem, &t->at.build.lj.lj, at->g, &t->vm) : -ENOMEM;
	if (r) {
		vm_free(t);
		return r;
	}
	if (vms->hold_sources)
		sources_hold(&t->sources, pid, image);
	vms->at[vms->n++] = t;
	return 0;
}

int traced_vms_find(struct traced_vms *vms, pid_t pid, struct error *err)
{
	struct luajit_vms found __cleanup(luajit_vms_free) = {};
	uint64_t image = process_image(pid);
	int r = luajit_vms_find(pid, &found, err);

	vms->incomplete |= !found.complete;
	for (size_t i = 0; i < found.n && !r; i++)
		r = add(vms, pid, image, &found.at[i]);
	return r;
}

/* Its process may have dropped rights, or have ended. */
static void look_at_sources(struct traced_vms *vms, struct traced_vm *t, bool ended)
{
	if (ended)
		sources_ended(&vms->ended, &t->sources);
	else
		sources_look(&t->sources);
}

static int read_one(struct traced_vms *vms, struct traced_vm *t, bool heap)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC);
	unsigned int what = TRACES_TRACES | TRACES_STARTS;
	int r;

	if (heap || before - t->heap_at >= HEAP_SHARE * t->heap_ns)
		what |= TRACES_HEAP | TRACES_CODE;
	r = traces_vm_read(t->vm, what);
	if (what & TRACES_HEAP) {
		t->heap_at = clock_ns(CLOCK_MONOTONIC);
		t->heap_ns = t->heap_at - before;
	}
	t->was_read |= !r;
	look_at_sources(vms, t, r == -ESRCH);
	return r;
}

int traced_vm_open_source(void *vm, const char *path, FILE **out)
{
	const struct traced_vm *t = vm;

	return t->sources.files ? target_source_open(t->sources.files, path, out) : -ESRCH;
}

int traced_vms_read(struct traced_vms *vms, bool heap)
{
	int r = 0;

	for (size_t i = 0; i < vms->n && r != -ENOMEM; i++)
		r = read_one(vms, vms->at[i], heap);
	return r == -ENOMEM ? r : 0; /* of a process that has ended: it keeps what was read */
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The VM of a thread, a new one if need be; NULL: not found. */
static int vm_of_thread(struct traced_vms *vms, pid_t pid, uint64_t L, struct traced_vm **out)
{
	uint64_t g, image = process_image(pid);
	struct luajit_vm at;
	int r;

	*out = NULL;
	for (size_t i = 0; i < vms->n; i++)
		if (vms->at[i]->pid == pid &&
		    !luajit_vm_thread(pid, &vms->at[i]->at.build.lj.lj, L, &g) &&
		    g == vms->at[i]->at.g) {
			*out = vms->at[i];
			return 0;
		}
	if (luajit_vm_of(vms->finder, pid, L, &at))
		return 0;
	r = add(vms, pid, image, &at);
	*out = find(vms, pid, at.g);
	return r;
}

static struct traced_thread *find_thread(const struct traced_vms *vms,
					 const struct prof_labels *labels)
{
	struct traced_thread *thread, probe = {};

	probe.key.L = labels->coroutine & ~PROF_MAIN;
	probe.key.of = labels->pid;
	HASH_FIND(hh, vms->threads, &probe.key, sizeof(probe.key), thread);
	return thread;
}

static int add_thread(struct traced_vms *vms, const struct prof_labels *labels)
{
	struct traced_thread *thread;

	if (!labels->coroutine || find_thread(vms, labels) ||
	    HASH_COUNT(vms->threads) >= THREADS_MOST)
		return 0;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	thread->key.L = labels->coroutine & ~PROF_MAIN;
	thread->key.of = labels->pid;
	HASH_ADD(hh, vms->threads, key, sizeof(thread->key), thread);
	if (!thread->hh.tbl) {
		free(thread);
		return -ENOMEM;
	}
	return vm_of_thread(vms, (pid_t)labels->pid, thread->key.L, &thread->vm);
}

/* Looks at the rows that are new. */
static int look(struct traced_vms *vms, const struct prof *prof)
{
	int r = 0;

	for (; vms->nrows < prof_nrows(prof) && !r; vms->nrows++) {
		struct prof_row row;

		prof_row(prof, vms->nrows, &row);
		r = add_thread(vms, &row.labels);
	}
	return r;
}

struct of {
	const struct traced_vms *vms;
	const struct traced_vm *vm;
	bool only; /* its process has no other VM */
};

static bool is_of(void *arg, const struct prof_labels *labels)
{
	const struct of *of = arg;
	const struct traced_thread *thread;

	if ((pid_t)labels->pid != of->vm->pid)
		return false;
	thread = find_thread(of->vms, labels);
	return thread && thread->vm ? thread->vm == of->vm : of->only;
}

static int share(struct traced_vms *vms, const struct prof *prof)
{
	int r = 0;

	for (size_t i = 0; i < vms->n && !r; i++) {
		struct of of = {vms, vms->at[i], true};

		for (size_t k = 0; k < vms->n; k++)
			of.only &= k == i || vms->at[k]->pid != vms->at[i]->pid;
		r = traces_share(vms->at[i]->vm, prof, is_of, &of, &vms->at[i]->shares);
	}
	return r;
}

/* ---- recording ------------------------------------------------------------------------------- */

static int sample(struct traced_vms *vms, struct session *session, struct error *err)
{
	int over = 0, r = 0;

	while (!over && !r) {
		over = session_poll(session, READ_MS, err);
		if (over < 0)
			return over;
		r = look(vms, session_prof(session));
		if (!r)
			r = traced_vms_read(vms, over);
	}
	return r;
}

int traced_vms_record(struct traced_vms *vms, const struct options *opts, int *status,
		      struct error *err)
{
	const struct session_options what = {
		.pids = opts->pids,
		.npids = opts->npids,
		.command = opts->command,
		.period_ns = opts->period_ns,
		.duration_ns = opts->duration_ns,
		.by_coroutine = true,
		.confine = outputs_use(opts),
	};
	__cleanup(session_free) struct session *session = NULL;
	int stop, r = luajit_finder_new(&vms->finder);

	if (r)
		return error_set(err, r, "out of memory");
	if (!opts->command)
		r = caps_keep(USE_TARGETS | USE_LOADING | outputs_use(opts), err);
	if (!r)
		r = session_open(&what, &session, err);
	if (r)
		return r;
	r = signals_catch(&stop);
	if (r)
		return error_set(err, r, "signals: %s", strerror(-r));
	r = session_start(session, stop, err);
	if (!r)
		r = sample(vms, session, err);
	if (!r)
		r = session_stop(session, err);
	if (!r)
		r = look(vms, session_prof(session));
	if (!r)
		r = share(vms, session_prof(session));
	if (!r && opts->command)
		*status = session_wait_command(session);
	if (r && !*err->what)
		error_set(err, r, "%s", r == -ENOMEM ? "out of memory" : strerror(-r));
	return r;
}

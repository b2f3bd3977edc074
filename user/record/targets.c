// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel does not report a library that a process loads. A process's mappings are looked at again
 * when BPF has seen another number of executable pages; and, without --all, periodically, often while
 * its image is young: a program loads most of what it needs as it starts.
 */
#include "recorded_zones.h"
#include "targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "sources.h"
#include "proc/process.h"

#define MS 1000000ULL
#define YOUNG_NS (2000 * MS)
#define ASKED_NS (10 * MS) /* least time between two looks that BPF asks for */
#define LOOK_NS (180 * MS) /* the same of periodic looks at a process that is not young */
#define LEARNED_MOST 16	   /* images in a round, of those without a sample */

/* A child has a copy of its parent's entry. If the parent's VMs are gone, it is looked at in this round. */
static int copy_modules(struct targets *ts, struct process *p, const struct lb_proc *vms,
			const struct process *parent)
{
	p->vms = *vms;
	if (!vms->more)
		return vm_modules_set(&p->modules, vms->module, vms->nmodules);
	if (parent && parent->vms.more == vms->more &&
	    loader_share_modules(ts->processes.loader, vms))
		return vm_modules_set(&p->modules, parent->modules.at, parent->modules.n);
	p->vms.more = 0;
	return 0;
}

int targets_adopt(struct targets *ts, const struct lb_rec_task *rec, struct process **target)
{
	const struct process *parent = processes_find(&ts->processes, (pid_t)rec->origin);
	pid_t pid = (pid_t)rec->pid;
	struct process *p = *target;
	struct lb_proc vms;
	int r = loader_get_proc(ts->processes.loader, pid, &vms);

	if (r)
		return r;
	if (vms.exec_id != rec->exec_id) /* it has called exec since */
		return -ESTALE;
	r = p ? 0 : processes_add(&ts->processes, pid, true, &p);
	if (r)
		return r;
	r = processes_set_image(&ts->processes, p, vms.epoch, false);
	if (!r)
		r = copy_modules(ts, p, &vms, parent);
	if (r) {
		processes_end(&ts->processes, p);
		return r;
	}
	if (!*target && parent && parent->image)
		image_fork(p->image, parent->image);
	p->registered = true;
	p->sampled_round = ts->round;
	p->image_id = process_image(pid);
	*target = p;
	return 0;
}

#define EVICTED_MOST (LB_PROCS / 16) /* at once */

static int by_last_sample(const void *a, const void *b)
{
	uint64_t x = (*(struct process *const *)a)->sampled_round;
	uint64_t y = (*(struct process *const *)b)->sampled_round;

	return (x > y) - (x < y);
}

/*
 * BPF's table is full. Removes those that have had no sample for longest: at their next sample they
 * are recognised anew. Their struct process stays. Returns false if no process could be removed.
 */
static bool evict(struct targets *ts, const struct process *keep)
{
	struct process **all __free = calloc(HASH_COUNT(ts->processes.all), sizeof(*all)), *p;
	size_t n = 0;

	if (!all)
		return false;
	for (p = ts->processes.all; p; p = p->hh.next)
		if (p->registered && !p->is_root && p != keep)
			all[n++] = p;
	qsort(all, n, sizeof(*all), by_last_sample);
	for (size_t i = 0; i < n && i < EVICTED_MOST; i++) {
		loader_drop_proc(ts->processes.loader, all[i]->pid);
		loader_drop_modules(ts->processes.loader, &all[i]->vms);
		all[i]->registered = false;
	}
	return n;
}

static int set_build(struct targets *ts, uint32_t index)
{
	const struct lb_build *build = &scan_build(ts->scan, index)->build;
	int r = ts->zones ? recorded_zones_build(ts->processes.loader, index, build) : 0;

	return r ? r : loader_set_build(ts->processes.loader, index, build);
}

/* Registers the scanned files with BPF, so that it recognises the next process that maps them. Requests
 * the programs of their families. */
static void give_files(struct targets *ts)
{
	struct lb_file_key key;
	struct lb_file file;

	while (scan_next_file(ts->scan, &key, &file)) {
		if (file.family && set_build(ts, file.build))
			continue;
		if (file.family)
			loader_request_families(ts->processes.loader, 1u << file.family);
		loader_set_file(ts->processes.loader, &key, &file);
	}
}

static int explain_no_vm(struct scan *scan, pid_t pid, struct error *err)
{
	struct error why;
	char name[256];

	process_name(pid, name, sizeof(name));
	scan_no_lua(scan, pid, &why);
	error_set(err, -ENODATA, "pid %d, %s: %s", (int)pid, name, why.what);
	return error_remedy(err, -ENODATA, "%s", why.remedy);
}

/* Reported at the end: without these files it is not known whether the process runs Lua. */
static void note_closed(struct targets *ts, pid_t pid, const struct lb_proc *vms)
{
	if (vms->nmodules || !scan_unopened(ts->scan) || caps_missing(CAPS_FILES) <= 0)
		return;
	ts->closed = true;
	explain_no_vm(ts->scan, pid, &ts->unsampled);
}

/* Returns the process's LB_IMAGE(); 0: it may not be read. */
static uint64_t bpf_image(pid_t pid)
{
	uint64_t stack = process_start_stack(pid), start, end;

	process_text(pid, &start, &end);
	return stack ? LB_IMAGE(stack, end) : 0;
}

static void scan(struct targets *ts, pid_t pid, struct target_scan *s)
{
	uint64_t image = bpf_image(pid);

	*s = (struct target_scan){.image = process_image(pid), .exec_vm = process_exec_pages(pid)};
	s->result = scan_process(ts->scan, pid, &s->vms, &s->unknown);
	s->vms.image = image;
	s->vms.exec_vm = s->exec_vm;
	s->mapped = scan_mapped(ts->scan);
	give_files(ts);
	if (!s->result)
		note_closed(ts, pid, &s->vms);
}

bool targets_have_vm(struct targets *ts, pid_t pid, struct target_scan *s)
{
	scan(ts, pid, s);
	return s->result == -ENOTSUP || (!s->result && s->vms.nmodules);
}

/* Registers a process with BPF: its builds first. */
static int register_vms(struct targets *ts, struct process *t, struct error *err)
{
	const struct vm_modules *ms = &t->modules;
	int r = 0;

	for (uint32_t i = 0; i < ms->n && !r; i++)
		r = set_build(ts, ms->at[i].build);
	if (r)
		return error_set(err, r, "BPF map: %s", strerror(-r));
	/* most of those that are there when --all begins wait, and have no samples for long */
	r = processes_set_image(&ts->processes, t, t->vms.epoch, ts->everywhere && !t->vms.exec_id);
	if (!r)
		r = loader_set_proc(ts->processes.loader, t->pid, &t->vms, ms->at, ms->n);
	if (r == -E2BIG && evict(ts, t))
		r = loader_set_proc(ts->processes.loader, t->pid, &t->vms, ms->at, ms->n);
	t->sampled_round = ts->round;
	if (r == -E2BIG)
		return error_set(err, r, "pid %d: not sampled: more than %d processes at a time",
				 (int)t->pid, LB_PROCS);
	if (r)
		return error_set(err, r, "pid %d: %s", (int)t->pid, strerror(-r));
	if (t->vms.nmodules < ms->n)
		error_set(&ts->unsampled, -ENOSPC,
			  "pid %d: %u of its VMs are not sampled: the processes that have more "
			  "than %d have "
			  "%d already",
			  (int)t->pid, (unsigned)(ms->n - t->vms.nmodules), LB_MODULES,
			  LB_MODULES_POOL);
	/* registered first: its samples are counted as lost meanwhile */
	return ts->sampling ? loader_wait_families(ts->processes.loader, err) : 0;
}

/* Keeps an error for the end of the recording, which goes on with other targets or VMs. */
static void note_unsampled(struct targets *ts, int r, const struct error *why)
{
	if (*why->what && r != -ESRCH)
		ts->unsampled = *why;
}

/* Calls on_vm_found for each VM that it did not have before. Holds its sources if there is one. */
static void notify(struct targets *ts, struct process *t, const struct vm_modules *before)
{
	bool any = false;

	for (uint32_t i = 0; i < t->modules.n; i++) {
		const struct lb_module *m = &t->modules.at[i];

		if (vm_modules_has(before, m))
			continue;
		if (ts->processes.hold_sources && !any)
			sources_hold(&t->sources, t->pid, t->image_id);
		any = ts->had_lua = true;
		if (ts->on_vm_found)
			ts->on_vm_found(ts->on_vm_found_arg, t->pid, scan_build(ts->scan, m->build),
					m);
	}
}

static int take_modules(struct targets *ts, struct process *t, const struct lb_proc *vms)
{
	if (vms->more && vms->more == t->vms.more) { /* this image was looked at meanwhile */
		t->vms = *vms;
		return 0;
	}
	loader_drop_modules(ts->processes.loader, &t->vms);
	t->vms = *vms;
	t->vms.more = 0;
	return vm_modules_set(&t->modules, vms->module, vms->more ? 0 : vms->nmodules);
}

int targets_take(struct targets *ts, const struct lb_rec_task *rec, struct process **target)
{
	const struct vm_modules none = {};
	struct process *t = *target;
	struct lb_proc vms;
	int missing = loader_get_proc(ts->processes.loader, (pid_t)rec->pid, &vms), r;

	/* when it has called exec since, the samples of this image still want names */
	if (missing || vms.exec_id != rec->exec_id)
		vms = (struct lb_proc){.exec_id = rec->exec_id, .epoch = rec->known};
	r = t ? 0 : processes_add(&ts->processes, (pid_t)rec->pid, true, &t);
	if (r)
		return r;
	*target = t;
	r = processes_set_image(&ts->processes, t, rec->known, false);
	if (r)
		return r;
	t->registered = !missing; /* BPF found its table full, or it has ended since */
	t->sampled_round = ts->round;
	r = take_modules(ts, t, &vms);
	if (r)
		return r;
	t->image_id = process_image(t->pid);
	t->mapped = 0; /* looked at in the next round: what BPF has not found is found then */
	t->look_ns = t->maps_ns = 0;
	t->young_until = clock_ns(CLOCK_MONOTONIC) + YOUNG_NS;
	notify(ts, t, &none);
	return 0;
}

/* Adds a module. Returns true if it was not there. */
static bool add_module(struct targets *ts, struct process *t, const struct lb_module *m)
{
	uint32_t n = t->modules.n;
	int r = vm_modules_add(&t->modules, m);

	if (r > 0 && n == t->modules.n && t->vms.replaced < UINT16_MAX - LB_MODULES_MOST)
		t->vms.replaced++;
	if (r >= 0)
		return r;
	t->vms.unsampled = 1;
	error_set(&ts->unsampled, -ENOTSUP,
		  "pid %d: not sampled: %s was loaded later; begin again to sample it", (int)t->pid,
		  scan_build(ts->scan, m->build)->name);
	return false;
}

/* BPF may have recognised this image meanwhile: the modules that it found keep their ids. was: the
 * process's modules before this scan. */
static int keep_known(struct targets *ts, struct process *t, const struct vm_modules *was)
{
	const struct lb_module *now = scan_modules(ts->scan);
	struct lb_proc found = t->vms, known;
	uint32_t i;
	int r;

	if (loader_get_proc(ts->processes.loader, t->pid, &known) || !known.nmodules ||
	    known.exec_id != found.exec_id || known.epoch != found.epoch)
		return vm_modules_set(&t->modules, now, found.nmodules);
	r = known.more ? vm_modules_set(&t->modules, was->at, was->n)
		       : vm_modules_set(&t->modules, known.module, known.nmodules);
	known.more = found.more;
	known.unsampled |= found.unsampled;
	known.exec_vm = found.exec_vm;
	known.asked_vm = 0;
	t->vms = known;
	for (i = 0; i < found.nmodules && !r; i++)
		add_module(ts, t, &now[i]);
	return r;
}

/* Sets its VMs to those that were scanned. was: its modules before. */
static int set_vms(struct targets *ts, struct process *t, const struct target_scan *s,
		   uint64_t exec_id, const struct vm_modules *was)
{
	uint32_t more = t->vms.more;

	if (t->image_id != s->image)
		t->maps_ns = 0;
	t->image_id = s->image;
	t->mapped = s->mapped;
	t->looked_vm = s->exec_vm;
	t->young_until = exec_id ? clock_ns(CLOCK_MONOTONIC) + YOUNG_NS : 0;
	t->vms = s->vms;
	t->vms.more = more;
	t->vms.exec_id = exec_id;
	t->registered = false;
	t->vms.epoch = exec_id ? LB_EPOCH(exec_id) : ++ts->epochs;
	return keep_known(ts, t, was);
}

static int register_scanned(struct targets *ts, struct process *t, struct error *err)
{
	struct error refused = {};
	int r = register_vms(ts, t, &refused);

	if (r && err)
		*err = refused;
	else
		note_unsampled(ts, r, &refused);
	t->registered = !r;
	return r;
}

void targets_undecided(struct process *t, const struct lb_rec_task *rec)
{
	if (t->undecided_id != rec->exec_id) /* samples of the previous image stay lost */
		t->undecided = 0;
	if (!t->undecided || t->undecided_modules > rec->nmodules)
		t->undecided_modules = rec->nmodules;
	t->undecided_id = rec->exec_id;
	t->undecided_vm = rec->exec_vm;
	t->undecided += rec->sample;
}

/*
 * Makes the undecided samples not_lua, or leaves them lost if BPF did not know each VM of the process at one of them. Code is rarely
 * unmapped: a look at fewer pages than the samples show was before them, or at another image.
 */
static void decide(struct targets *ts, struct process *t)
{
	if (t->looked_vm < t->undecided_vm)
		return;
	if (t->modules.n + t->vms.replaced <= t->undecided_modules && !t->vms.unsampled)
		*ts->not_lua += t->undecided;
	t->undecided = 0;
}

/*
 * Applies a scan of a process: stores its VMs and registers them with BPF. A scan that failed leaves
 * the process as it was, unless it found only VMs that are not sampled (-ENOTSUP). Returns what
 * targets_recognise() does. err: NULL: errors are kept for the end of the recording.
 */
static int recognise(struct targets *ts, struct process *t, const struct target_scan *s,
		     uint64_t exec_id, struct error *err)
{
	struct vm_modules was __cleanup(vm_modules_free) = t->modules;
	const struct lb_proc vms = t->vms;
	const struct vm_modules none = {};
	bool was_registered = t->registered;
	/* another image, all VMs are new; in an exec process_image() changes twice for one exec_id */
	bool is_new = s->image != t->image_id && !(exec_id && exec_id == vms.exec_id);
	int scanned = s->result, r;

	t->modules = none;
	r = set_vms(ts, t, s, exec_id, &was);
	if (scanned && err)
		*err = s->unknown;
	else
		note_unsampled(ts, scanned, &s->unknown);
	if (r || (scanned && scanned != -ENOTSUP)) {
		/* it may be in an exec: keeps what BPF has; mapped = 0: the next look scans again */
		vm_modules_free(&t->modules);
		t->modules = was;
		was = none;
		t->vms = vms;
		t->registered = was_registered;
		t->mapped = 0;
		return r ? r : scanned;
	}
	r = register_scanned(ts, t, err);
	if (r)
		return r;
	notify(ts, t, is_new ? &none : &was);
	if (s->image) /* during an exec not all is mapped yet */
		decide(ts, t);
	return !scanned && !t->vms.nmodules ? explain_no_vm(ts->scan, t->pid, err) : scanned;
}

int targets_recognise(struct targets *ts, struct process *t, uint64_t exec_id, struct error *err)
{
	struct target_scan s;

	scan(ts, t->pid, &s);
	return recognise(ts, t, &s, exec_id, err);
}

/* Another process may have its pid since, or the same one another image. */
void targets_meet(struct targets *ts, struct process *t, const struct target_scan *s)
{
	if (s->image && process_image(t->pid) == s->image)
		recognise(ts, t, s, 0, NULL);
	else
		targets_recognise(ts, t, 0, NULL);
}

/* BPF has the VMs of a look: a sample without one ran no Lua. Of the image that it knows. */
static void put_looked(struct targets *ts, struct process *t, uint32_t exec_vm)
{
	struct lb_proc known;

	t->vms.exec_vm = t->looked_vm = exec_vm;
	if (loader_get_proc(ts->processes.loader, t->pid, &known) ||
	    (known.exec_vm == exec_vm && !known.asked_vm))
		return;
	known.exec_vm = exec_vm;
	known.asked_vm = 0;
	loader_put_proc(ts->processes.loader, t->pid, &known);
}

/* Adds the VMs of a scan to those that it has, of the image that BPF knows. */
static void add_scanned(struct targets *ts, struct process *t, const struct target_scan *s)
{
	struct vm_modules before __cleanup(vm_modules_free) = {};
	bool unsampled = t->vms.unsampled, is_new = false;

	if (vm_modules_set(&before, t->modules.at, t->modules.n))
		return;
	t->vms.unsampled |= s->vms.unsampled;
	for (uint32_t i = 0; i < s->vms.nmodules; i++)
		is_new |= add_module(ts, t, &scan_modules(ts->scan)[i]);
	is_new |= t->vms.unsampled != unsampled;
	if (is_new && !register_vms(ts, t, NULL))
		notify(ts, t, &before);
	if (s->result && s->result != -ENOTSUP)
		return;
	put_looked(ts, t, s->exec_vm);
	decide(ts, t);
}

/*
 * True if the scan was of the image that BPF knows. After an exec BPF asks for the new image at its next event, behind the samples
 * of the old one. The image_id of a process without a VM may be out of date: from a look during its exec, or from before
 * PR_SET_MM. Then the image is the same if it has as many executable pages as BPF has just seen in it (asked_vm; 0: BPF has
 * not asked).
 */
static bool is_known_image(const struct process *t, const struct target_scan *s, uint32_t asked_vm)
{
	uint64_t image = process_image(t->pid);

	if (image == t->image_id)
		return true;
	return image && image == s->image && !t->modules.n && asked_vm && asked_vm == s->exec_vm;
}

static void look(struct targets *ts, struct process *t, uint64_t now, uint32_t asked_vm)
{
	struct target_scan s;
	struct lb_proc known;
	uint64_t mapped;
	size_t n;

	if (now < t->maps_ns)
		return;
	mapped = process_mapped(t->pid, &n);
	t->maps_ns = now + process_maps_pause_ns(n);
	if (!mapped || mapped == t->mapped)
		return;
	t->mapped = mapped;
	scan(ts, t->pid, &s);
	note_unsampled(ts, s.result, &s.unknown);
	/* of the image that BPF knows: when this is another by now, it asks anew */
	if (loader_get_proc(ts->processes.loader, t->pid, &known)) {
		t->mapped = 0; /* what was found is not registered */
		return;
	}
	if (!known.exec_id) {
		targets_meet(ts, t, &s);
		return;
	}
	if (!is_known_image(t, &s, asked_vm))
		return;
	t->vms.exec_id = known.exec_id;
	t->image_id = s.image;
	add_scanned(ts, t, &s);
}

void targets_look_again(struct targets *ts, struct process *t, const struct lb_rec_task *rec)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (t->looked_vm != rec->exec_vm) {
		t->mapped = t->look_ns = 0; /* the next look scans, if this one is not made */
		if (now >= t->asked_ns && t->pidfd >= 0) {
			look(ts, t, now, rec->exec_vm);
			t->asked_ns = clock_ns(CLOCK_MONOTONIC) + ASKED_NS;
		}
	}
	decide(ts, t);
}

void targets_look(struct targets *ts, uint64_t now)
{
	struct process *t, *next;
	unsigned int learned = 0;

	HASH_ITER (hh, ts->processes.all, t, next) {
		if (signals_caught())
			break;
		if (t->image && learned < LEARNED_MOST)
			learned += image_learn(t->image);
		if (now < t->look_ns)
			continue;
		if (t->pidfd < 0) { /* its samples were read before this round */
			processes_end(&ts->processes, t);
			continue;
		}
		t->look_ns = ts->waits || now < t->young_until ? now : now + LOOK_NS;
		sources_look(&t->sources);
		if (t->registered && (!ts->everywhere || !t->mapped))
			look(ts, t, now, 0);
	}
}

void targets_left(struct targets *ts)
{
	for (struct process *t = ts->processes.all; t; t = t->hh.next)
		if (t->image)
			image_left(t->image);
}

void targets_share(struct targets *ts)
{
	struct loader *loader = ts->processes.loader;
	struct lb_proc known;
	struct process *t;

	for (t = ts->processes.all; t; t = t->hh.next) {
		uint32_t shares = t->image && image_share(t->image);

		if (shares == t->vms.shares || loader_get_proc(loader, t->pid, &known) ||
		    known.epoch != t->vms.epoch)
			continue;
		t->vms.shares = shares;
		known.shares = shares; /* with the exec_id that BPF may have adopted */
		loader_put_proc(loader, t->pid, &known);
	}
}

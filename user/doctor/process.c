// SPDX-License-Identifier: BSD-2-Clause
/*
 * Examines the processes one after the other, then samples all of them in one window of time. The
 * findings of each are kept until the end, as the summary is printed first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "doctor.h"
#include "record/session.h"
#include "proc/process.h"
#include "detect/scan.h"

#define PROOF_NS 300000000ULL
#define PROOF_PERIOD_NS 1000000ULL

struct finding {
	enum doctor_verdict verdict;
	const char *object; /* a constant */
	char *what, *remedy;
};

struct patient {
	pid_t pid;
	bool has_vm;
	bool idle;	 /* no walk was tried */
	char build[128]; /* of its first VM */
	struct finding *findings;
	size_t n;
	enum doctor_verdict worst;
};

struct ward {
	struct patient *all;
	size_t n;
	struct scan *scan;
};

static void ward_free(struct ward *w)
{
	for (size_t i = 0; i < w->n; i++) {
		for (size_t k = 0; k < w->all[i].n; k++) {
			free(w->all[i].findings[k].what);
			free(w->all[i].findings[k].remedy);
		}
		free(w->all[i].findings);
	}
	free(w->all);
	scan_free(&w->scan);
}

/* The callback of struct doctor: arg is the patient. */
static void keep(void *arg, enum doctor_verdict verdict, const char *object, const char *what,
		 const char *remedy)
{
	struct patient *p = arg;

	if (verdict > p->worst)
		p->worst = verdict;
	if (array_grow(&p->findings, p->n, sizeof(*p->findings)))
		return;
	p->findings[p->n++] = (struct finding){verdict, object, strdup(what), strdup(remedy)};
}

/* ---- looking --------------------------------------------------------------------------------- */

static void add_module(void *arg, const struct doctor_module *module)
{
	__text struct text line = {0};
	struct patient *p = arg;

	if (!p->has_vm)
		snprintf(p->build, sizeof(p->build), "%s", module->build->name);
	p->has_vm = true;
	doctor_module_text(module, &line);
	keep(p, DOCTOR_OK, "VM", text_str(&line), "");
}

static void check_modules(struct ward *w, struct patient *p)
{
	struct error err = {};
	int r = doctor_modules_by(w->scan, p->pid, add_module, p, &err);

	/* A process may have a known build and an unknown one. */
	if (r || *err.what) {
		keep(p, p->has_vm ? DOCTOR_WARN : DOCTOR_FAIL, "VM", err.what, err.remedy);
	} else if (!p->has_vm) {
		scan_no_lua(w->scan, p->pid, &err);
		keep(p, DOCTOR_FAIL, "VM", err.what, err.remedy);
	}
}

/* An idle master has loaded Lua before it forked its workers: these do the work. */
static void check_workers(struct patient *p)
{
	pid_t workers[PROCESS_WORKERS];
	size_t n = process_workers(p->pid, workers, PROCESS_WORKERS);
	__text struct text what = {0};

	if (!n)
		return;
	text_printf(&what, "%zu %s the same program, each a process of its own: -p ", n,
		    n == 1 ? "child runs" : "children run");
	process_put_pids(&what, workers, n);
	keep(p, DOCTOR_OK, "workers", text_str(&what), "");
}

static void look(struct ward *w, struct patient *p)
{
	char name[PROCESS_NAME], what[PROCESS_NAME + 64];
	struct error err = {};
	size_t threads;

	if (process_check(p->pid, &err)) {
		keep(p, DOCTOR_FAIL, "process", err.what, err.remedy);
		return;
	}
	process_name(p->pid, name, sizeof(name));
	process_count_threads(p->pid, &threads);
	snprintf(what, sizeof(what), "pid %d, %zu thread%s, %s", (int)p->pid, threads,
		 threads == 1 ? "" : "s", *name ? name : "no executable");
	keep(p, DOCTOR_OK, "process", what, "");
	check_modules(w, p);
	if (p->has_vm)
		check_workers(p);
}

/* ---- the proof ------------------------------------------------------------------------------- */

/* Lists the live processes that have a VM; returns their number. */
static size_t alive(const struct ward *w, pid_t *pids)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if (w->all[i].has_vm && !process_check(w->all[i].pid, NULL))
			pids[n++] = w->all[i].pid;
	return n;
}

/* Samples the live processes. -ESRCH: none is alive. */
static int sample(const struct ward *w, pid_t *pids, struct session **session, struct error *err)
{
	struct session *s __cleanup(session_free) = NULL;
	struct session_options what = {
		.pids = pids,
		.period_ns = PROOF_PERIOD_NS,
		.duration_ns = PROOF_NS,
		.by_process = true,
		.may_lack = true,
	};
	size_t before = SIZE_MAX;
	int r = -ESRCH;

	/* tries again without those that ended meanwhile */
	for (;;) {
		what.npids = alive(w, pids);
		if (!what.npids || what.npids == before)
			break;
		before = what.npids;
		*err = (struct error){};
		r = session_open(&what, &s, err);
		if (!r)
			r = session_run(s, -1, err);
		if (!r)
			*session = TAKE_PTR(s);
		if (!r)
			break;
		session_free(&s);
	}
	return what.npids ? r : -ESRCH;
}

static void judge(const struct session *session, struct patient *p)
{
	const struct doctor keeper = {.report = keep, .arg = p};
	__cleanup(prof_free) struct prof *prof = NULL;
	struct session_stats stats;
	enum doctor_verdict worst;
	struct summary summary;

	if (session_process(session, p->pid, &stats, &prof)) {
		keep(p, DOCTOR_FAIL, "proof", "out of memory", "");
		return;
	}
	summary_make(&stats, prof, &summary);
	p->idle = !(summary.resolved + summary.lost);
	worst = p->worst;
	doctor_judge(&keeper, &summary);
	if (p->idle) /* the summary counts idle processes */
		p->worst = worst;
}

static void prove(struct ward *w)
{
	struct session *session __cleanup(session_free) = NULL;
	__free pid_t *pids = calloc(w->n, sizeof(*pids));
	struct error err = {};
	int r = pids ? sample(w, pids, &session, &err) : -ENOMEM;

	for (size_t i = 0; i < w->n; i++) {
		struct patient *p = &w->all[i];

		if (!p->has_vm)
			continue;
		if (r == -ESRCH)
			keep(p, DOCTOR_WARN, "proof", "not proved: the process has ended", "");
		else if (r)
			keep(p, DOCTOR_FAIL, "proof", *err.what ? err.what : strerror(-r),
			     err.remedy);
		else
			judge(session, p);
	}
}

/* ---- saying ---------------------------------------------------------------------------------- */

static void put_builds(const struct ward *w, struct text *line)
{
	for (size_t i = 0; i < w->n; i++) {
		const char *build = w->all[i].build;
		bool first = *build;
		size_t n = 0;

		for (size_t k = 0; k < i && first; k++)
			first = strcmp(w->all[k].build, build) != 0;
		for (size_t k = i; k < w->n && first; k++)
			n += !strcmp(w->all[k].build, build);
		if (first)
			text_printf(line, "; %s: %zu", build, n);
	}
}

static void sum_up(const struct doctor *d, const struct ward *w)
{
	size_t verdicts[DOCTOR_FAIL + 1] = {}, idle = 0;
	__text struct text line = {0};

	for (size_t i = 0; i < w->n; i++) {
		verdicts[w->all[i].worst]++;
		idle += w->all[i].idle;
	}
	text_printf(&line, "%zu: %zu can be profiled", w->n, w->n - verdicts[DOCTOR_FAIL]);
	if (idle)
		text_printf(&line, ", %zu of them not proved as they ran no Lua", idle);
	if (verdicts[DOCTOR_WARN])
		text_printf(&line, ", %zu with something to note", verdicts[DOCTOR_WARN]);
	if (verdicts[DOCTOR_FAIL])
		text_printf(&line, ", %zu cannot", verdicts[DOCTOR_FAIL]);
	put_builds(w, &line);
	d->report(d->arg, DOCTOR_OK, "processes", text_str(&line), "");
}

void doctor_processes(const struct doctor *d, const pid_t *pids, size_t n, bool all)
{
	__cleanup(ward_free) struct ward w = {.all = calloc(n, sizeof(*w.all))};

	if (!w.all || scan_new(&w.scan)) {
		d->report(d->arg, DOCTOR_FAIL, "processes", "out of memory", "");
		return;
	}
	w.n = n;
	for (size_t i = 0; i < n; i++) {
		w.all[i].pid = pids[i];
		look(&w, &w.all[i]);
	}
	prove(&w);
	if (n > 1)
		sum_up(d, &w);
	for (size_t i = 0; i < n; i++) {
		const struct patient *p = &w.all[i];

		for (size_t k = 0; k < p->n && (all || n <= DOCTOR_ALL || p->worst); k++)
			d->report(d->arg, p->findings[k].verdict, p->findings[k].object,
				  p->findings[k].what ?: "out of memory",
				  p->findings[k].remedy ?: "");
	}
}

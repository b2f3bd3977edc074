// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor.h"
#include "session.h"
#include "target/process.h"
#include "vm/scan.h"

#define PROOF_NS 300000000ULL
#define PROOF_PERIOD_NS 1000000ULL
#define TOLERABLE_PPM 10000 /* lost samples that are no cause for worry */

/* x86-64 general registers, by their number in an instruction's encoding */
static const char *const gprs[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
				   "r8",  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15"};

/* ---- modules --------------------------------------------------------------------------------- */

struct find_path {
	uint64_t addr;
	char path[4200];
};

static int match_path(void *arg, const struct process_mapping *m)
{
	struct find_path *f = arg;

	if (f->addr < m->start || f->addr >= m->end)
		return 0;
	snprintf(f->path, sizeof(f->path), "%s", m->path);
	return 1;
}

void doctor_module(pid_t pid, const struct vm_build *build, const struct lb_module *at,
		   doctor_show *fn, void *arg)
{
	struct find_path f = {.addr = at->vm_start};
	struct doctor_module m = {.build = build, .at = at, .path = f.path};

	process_mappings(pid, match_path, &f);
	fn(arg, &m);
}

int doctor_modules(pid_t pid, doctor_show *fn, void *arg, struct error *err)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	struct lb_proc proc = {};
	int r = scan_new(&scan);

	if (r)
		return error_set(err, r, "out of memory");
	r = scan_process(scan, pid, &proc, err);
	for (uint32_t i = 0; i < proc.nmodules; i++)
		doctor_module(pid, scan_build(scan, proc.module[i].build), &proc.module[i], fn,
			      arg);
	return r;
}

static void puc_text(const struct doctor_module *m, struct text *out)
{
	uint32_t reg = m->build->build.puc.pc_reg;

	if (m->at->gc_lo)
		text_printf(out, "; collector 0x%" PRIx64 "-0x%" PRIx64, (uint64_t)m->at->gc_lo,
			    (uint64_t)m->at->gc_hi);
	else
		text_puts(out, "; collector not found");
	if (m->build->build.puc.puc.flags & PUC_SAVEDPC_EXACT)
		text_puts(out, "; pc is saved before each instruction");
	else if (reg < sizeof(gprs) / sizeof(gprs[0]))
		text_printf(out, "; pc in %s", gprs[reg]);
	else
		text_puts(out, "; pc in no known register");
}

void doctor_module_text(const struct doctor_module *m, struct text *out)
{
	const char *evidence = m->build->evidence;

	text_put_clean(out, m->path, strlen(m->path));
	text_printf(out, "%s%s; interpreter 0x%" PRIx64 "-0x%" PRIx64, *m->path ? ": " : "",
		    m->build->name, (uint64_t)m->at->vm_start, (uint64_t)m->at->vm_end);
	if (m->at->family == LB_FAMILY_PUC)
		puc_text(m, out);
	if (*evidence)
		text_puts(out, "; ");
	text_put_clean(out, evidence, strlen(evidence)); /* quotes the file */
}

struct told {
	const struct doctor *d;
	size_t n;
};

static void tell_module(void *arg, const struct doctor_module *module)
{
	__text struct text line = {0};
	struct told *t = arg;

	t->n++;
	doctor_module_text(module, &line);
	t->d->tell(t->d->arg, DOCTOR_OK, "VM", text_str(&line), "");
}

static void put_no_lua_remedy(pid_t pid, struct text *remedy)
{
	struct scan *scan __cleanup(scan_free) = NULL;

	if (!scan_new(&scan))
		scan_no_lua_remedy(scan, pid, remedy);
}

/* Is there a VM? */
static bool check_modules(const struct doctor *d, pid_t pid)
{
	__text struct text remedy = {0};
	struct told told = {.d = d};
	struct error err = {};
	int r = doctor_modules(pid, tell_module, &told, &err);

	/* Beside a known build there may be one that is not. */
	if (r || *err.what)
		d->tell(d->arg, told.n ? DOCTOR_WARN : DOCTOR_FAIL, "VM", err.what, err.remedy);
	else if (!told.n) {
		put_no_lua_remedy(pid, &remedy);
		d->tell(d->arg, DOCTOR_FAIL, "VM", "no Lua in this process", text_str(&remedy));
	}
	return told.n;
}

/* ---- the proof ------------------------------------------------------------------------------- */

static int sample(pid_t pid, struct session **session, struct error *err)
{
	const struct session_options what = {
		.pids = &pid,
		.npids = 1,
		.period_ns = PROOF_PERIOD_NS,
		.duration_ns = PROOF_NS,
	};
	struct session *s __cleanup(session_free) = NULL;
	int r = session_open(&what, &s, err);

	if (!r)
		r = session_run(s, -1, err);
	if (!r)
		*session = TAKE_PTR(s);
	return r;
}

static void losses_text(const struct summary *s, struct text *out)
{
	for (size_t i = 0; i < prof_nlosses(s->prof); i++) {
		struct prof_loss loss;

		prof_loss(s->prof, i, &loss);
		if (!prof_is_outside(loss.reason))
			text_printf(out, "; lost %" PRIu64 " (%s): %s", loss.count, loss.reason,
				    summary_sentence(loss.reason));
	}
}

/* No walk was tried. That is no fault of the process or ours. */
static void tell_no_walk(const struct doctor *d, const struct summary *s, struct text *line)
{
	text_printf(line, "not proved: %.1f ms of CPU time in %.1f s: %s",
		    (double)s->stats.cpu_ns / 1e6, (double)s->stats.wall_ns / 1e9,
		    s->outside				    ? "all of it outside Lua"
		    : s->stats.end == SESSION_TARGETS_ENDED ? "the process has ended"
							    : "the process is idle");
	d->tell(d->arg, DOCTOR_WARN, "proof", text_str(line), "ask again while it runs Lua code");
}

void doctor_judge(const struct doctor *d, const struct summary *s)
{
	enum doctor_verdict verdict = DOCTOR_OK;
	__text struct text line = {0};
	const char *remedy = "";

	if (!(s->resolved + s->lost)) {
		tell_no_walk(d, s, &line);
		return;
	}
	text_printf(&line,
		    "%sproved on the live target: %" PRIu64 " of %" PRIu64
		    " walks came to their end; %" PRIu64 " samples outside Lua",
		    s->lost > s->resolved ? "not " : "", s->resolved, s->resolved + s->lost,
		    s->outside);
	losses_text(s, &line);
	if (summary_lost_ppm(s) > TOLERABLE_PPM)
		verdict = DOCTOR_WARN;
	if (s->lost > s->resolved) {
		verdict = DOCTOR_FAIL;
		remedy = "is the VM a patched build? Please report what the lines above say";
	}
	d->tell(d->arg, verdict, "proof", text_str(&line), remedy);
}

/* A master that is idle has its Lua from before it made its workers. */
static void check_workers(const struct doctor *d, pid_t pid)
{
	pid_t workers[PROCESS_WORKERS];
	size_t n = process_workers(pid, workers, PROCESS_WORKERS);
	__text struct text what = {0};

	if (!n)
		return;
	text_printf(&what, "%zu %s the same program, each a process of its own: -p ", n,
		    n == 1 ? "child runs" : "children run");
	process_put_pids(&what, workers, n);
	d->tell(d->arg, DOCTOR_OK, "workers", text_str(&what), "");
}

static void prove(const struct doctor *d, pid_t pid)
{
	struct session *session __cleanup(session_free) = NULL;
	struct session_stats stats;
	struct summary summary;
	struct error err = {};

	if (sample(pid, &session, &err)) {
		d->tell(d->arg, DOCTOR_FAIL, "proof", err.what, err.remedy);
		return;
	}
	session_stats(session, &stats);
	summary_make(&stats, session_prof(session), &summary);
	doctor_judge(d, &summary);
}

static int count(void *arg, pid_t tid)
{
	(void)tid;
	++*(size_t *)arg;
	return 0;
}

void doctor_process(const struct doctor *d, pid_t pid)
{
	char name[PROCESS_NAME], what[PROCESS_NAME + 64];
	struct error err = {};
	size_t threads = 0;

	if (process_check(pid, &err)) {
		d->tell(d->arg, DOCTOR_FAIL, "process", err.what, err.remedy);
		return;
	}
	process_name(pid, name, sizeof(name));
	process_threads(pid, count, &threads);
	snprintf(what, sizeof(what), "pid %d, %zu thread%s, %s", (int)pid, threads,
		 threads == 1 ? "" : "s", *name ? name : "no executable");
	d->tell(d->arg, DOCTOR_OK, "process", what, "");
	if (!check_modules(d, pid))
		return;
	check_workers(d, pid);
	prove(d, pid);
}

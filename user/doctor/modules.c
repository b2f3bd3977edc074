// SPDX-License-Identifier: BSD-2-Clause
/* The VMs that a process has mapped, and a line of text for each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/insn.h"
#include "base/cleanup.h"
#include "doctor.h"
#include "proc/process.h"
#include "detect/scan.h"

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

	process_mappings(pid, match_path, &f, NULL);
	fn(arg, &m);
}

int doctor_modules_by(struct scan *scan, pid_t pid, doctor_show *fn, void *arg, struct error *err)
{
	struct lb_proc proc = {};
	int r = scan_process(scan, pid, &proc, err);

	const struct lb_module *modules = scan_modules(scan);

	for (uint32_t i = 0; i < proc.nmodules; i++)
		doctor_module(pid, scan_build(scan, modules[i].build), &modules[i], fn, arg);
	return r;
}

int doctor_modules(pid_t pid, doctor_show *fn, void *arg, struct error *err)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	int r = scan_new(&scan);

	return r ? error_set(err, r, "out of memory") : doctor_modules_by(scan, pid, fn, arg, err);
}

static void puc_text(const struct doctor_module *m, struct text *out)
{
	const char *reg = insn_reg_name(m->build->build.puc.pc_reg);

	if (m->at->gc_lo)
		text_printf(out, "; collector 0x%" PRIx64 "-0x%" PRIx64, (uint64_t)m->at->gc_lo,
			    (uint64_t)m->at->gc_hi);
	else
		text_puts(out, "; collector not found");
	if (m->build->build.puc.puc.flags & PUC_SAVEDPC_EXACT)
		text_puts(out, "; pc is saved before each instruction");
	else if (reg)
		text_printf(out, "; pc in %s", reg);
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

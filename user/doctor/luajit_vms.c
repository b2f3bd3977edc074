// SPDX-License-Identifier: BSD-2-Clause
#include "luajit_vms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/mem_remote.h"
#include "detect/scan.h"
#include "vm_states.h"

/* Bytes of memory that are searched: takes about two seconds. */
#define MEMORY (8ULL << 30)

static int add(struct luajit_vms *vms, const struct vm_build *build, const struct vm_state *state)
{
	struct luajit_vm *vm;

	if (array_grow(&vms->at, vms->n, sizeof(*vm)))
		return -ENOMEM;
	vm = &vms->at[vms->n++];
	*vm = (struct luajit_vm){.build = build->build, .g = state->g, .jit = state->jit};
	snprintf(vm->release, sizeof(vm->release), "%s", build->release);
	return 0;
}

static int find_states(pid_t pid, struct scan *scan, uint32_t nmodules, struct luajit_vms *out)
{
	const struct lb_module *modules = scan_modules(scan);
	struct vm_states *states __cleanup(cleanup_free) = malloc(sizeof(*states));
	struct vm_file files[LB_MODULES_MOST];
	struct budget work = {.remaining = MEMORY};
	size_t n = 0;
	int r;

	if (!states)
		return -ENOMEM;
	for (uint32_t i = 0; i < nmodules && n < LB_MODULES_MOST; i++)
		if (lb_is_luajit(modules[i].family))
			files[n++] = (struct vm_file){&scan_build(scan, modules[i].build)->build,
						      &modules[i]};
	if (!n)
		return -ENODATA;
	r = vm_states_find(pid, files, n, &work, states);
	out->complete = states->complete && states->n <= VM_STATES;
	for (size_t i = 0; i < states->n && i < VM_STATES && !r; i++) {
		const struct lb_module *m = files[states->at[i].module].at;

		r = add(out, scan_build(scan, m->build), &states->at[i]);
	}
	return r;
}

int luajit_vms_find(pid_t pid, struct luajit_vms *out, struct error *err)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	struct luajit_vms vms __cleanup(luajit_vms_free) = {};
	struct lb_proc proc = {};
	int r = scan_new(&scan);

	*err = (struct error){};
	if (r)
		return error_set(err, r, "out of memory");
	r = scan_process(scan, pid, &proc, err);
	if (r && r != -ENOTSUP)
		return *err->what ? r : error_set(err, r, "pid %d: %s", (int)pid, strerror(-r));
	r = find_states(pid, scan, proc.nmodules, &vms);
	if (r == -ENODATA && !*err->what) {
		if (!proc.nmodules)
			scan_no_lua(scan, pid, err);
		else
			error_set(err, r, "pid %d: its Lua is PUC Lua, which compiles nothing",
				  (int)pid);
		return -ENODATA;
	}
	if (r)
		return *err->what ? r : error_set(err, r, "pid %d: %s", (int)pid, strerror(-r));
	*err = (struct error){};
	*out = vms;
	vms = (struct luajit_vms){};
	return 0;
}

int luajit_vm_thread(pid_t pid, const struct lj_layout *lj, uint64_t L, uint64_t *g)
{
	uint8_t head[LJ_L_READ] = {};
	struct mem_remote mem;
	int r;

	mem_remote_init(&mem, pid);
	r = mem_read(&mem.mem, head, LJ_OFF(lj, L_READ), L);
	if (r)
		return r;
	if (head[LJ_OFF(lj, L_GCT)] != LJ_GCT_THREAD)
		return -ENOENT;
	memcpy(g, head + LJ_OFF(lj, L_GLREF), sizeof(*g));
	if (lj_is_gc32(lj))
		*g &= UINT32_MAX;
	return 0;
}

/* The dispatch table, in one block with the global_State, leads into the file's VM. */
static int try_module(pid_t pid, const struct vm_build *build, const struct lb_module *m,
		      uint64_t L, struct luajit_vm *out)
{
	struct mem_remote mem;
	uint64_t g, handler = 0;
	int r = luajit_vm_thread(pid, &build->build.lj.lj, L, &g);

	mem_remote_init(&mem, pid);
	if (!r)
		r = mem_read(&mem.mem, &handler, sizeof(handler), g + build->build.lj.lj.g2disp);
	if (r || handler < m->vm_start || handler >= m->vm_end)
		return -ENOENT;
	*out = (struct luajit_vm){.build = build->build, .g = g, .jit = true};
	snprintf(out->release, sizeof(out->release), "%s", build->release);
	return 0;
}

struct luajit_finder {
	struct scan *scan;
};

int luajit_finder_new(struct luajit_finder **out)
{
	struct luajit_finder *finder __cleanup(luajit_finder_free) = calloc(1, sizeof(*finder));
	int r = finder ? scan_new(&finder->scan) : -ENOMEM;

	if (!r)
		*out = TAKE_PTR(finder);
	return r;
}

void luajit_finder_free(struct luajit_finder **finder)
{
	if (*finder)
		scan_free(&(*finder)->scan);
	free(*finder);
	*finder = NULL;
}

int luajit_vm_of(struct luajit_finder *finder, pid_t pid, uint64_t L, struct luajit_vm *out)
{
	struct scan *scan = finder->scan;
	const struct lb_module *modules;
	struct lb_proc proc = {};
	struct error err = {};
	int r = scan_process(scan, pid, &proc, &err);

	if (r && r != -ENOTSUP)
		return r;
	modules = scan_modules(scan);
	for (uint32_t i = 0; i < proc.nmodules; i++)
		if (lb_is_luajit(modules[i].family) &&
		    !try_module(pid, scan_build(scan, modules[i].build), &modules[i], L, out))
			return 0;
	return -ENOENT;
}

void luajit_vms_free(struct luajit_vms *vms)
{
	free(vms->at);
	vms->at = NULL;
	vms->n = 0;
}

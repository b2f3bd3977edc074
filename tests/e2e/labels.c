// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: labels PID MOST
 *
 * Prints, for each trace number below MOST of a LuaJIT process, the bytecode that luabpf takes each recorded IR
 * instruction for:
 *
 *	trace NUMBER
 *	REF OPERATION LINEDEFINED	REF counts from 0 at REF_BIAS; LINEDEFINED is -3 without a
 *					label, -1 for bytecode of a built-in function
 *	failed NUMBER			it is there, and the bytecode was not found
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem_remote.h"
#include "doctor/luajit_vms.h"
#include "jit/attrib_mcode.h"
#include "jit/jit.h"
#include "jit/read.h"
#include "jit/search.h"
#include "lua/lj/ffnames.h"

static const char *const operations[] = {
#define LJ_IR(name, kind, op1, op2) #name,
#include "detect/lj/ir.def"
#undef LJ_IR
};

static void print_label(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	int32_t step = *lj_label_of(t, ref), line = -3;
	uint64_t at;

	if (step >= 0) {
		at = lj_code_of(t, step)->proto + LJ_OFF(&t->lj, PROTO_FIRSTLINE);
		if (mem_read(mem, &line, sizeof(line), at))
			line = -3;
	}
	printf("%u %s %d\n", ref - LJ_REF_BIAS, ir->o < LJ_IR__MAX ? operations[ir->o] : "?", line);
}

static void print_trace(const struct luajit_vm *vm, const struct lb_mem *mem,
			const struct lj_ffnames *names, uint32_t no)
{
	struct lj_trace *t __cleanup(lj_trace_free) = calloc(1, sizeof(*t));
	const struct lj_layout *lj = &vm->build.lj.lj;
	const struct lj_trace_wanted wanted = {.no = no};
	uint32_t ref;

	if (!t || lj_trace_copy(t, mem, lj, vm->g, &wanted))
		return;
	if (lj_trace_path(t, mem, lj, vm->g, names) || lj_trace_assign(t)) {
		printf("failed %u\n", no);
		return;
	}
	printf("trace %u\n", no);
	for (ref = LJ_REF_BIAS + 1; ref < lj_recorded_end(t); ref++)
		print_label(t, mem, ref);
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 3 ? atoi(argv[1]) : 0;
	uint32_t most = argc == 3 ? (uint32_t)atoi(argv[2]) : 0, no;
	struct luajit_vms vms __cleanup(luajit_vms_free) = {};
	struct mem_remote mem;
	struct error err = {};
	size_t i;

	if (luajit_vms_find(pid, &vms, &err)) {
		fprintf(stderr, "labels: %s\n", err.what);
		return 1;
	}
	mem_remote_init(&mem, pid);
	for (i = 0; i < vms.n; i++) {
		struct lj_ffnames *names __cleanup(lj_ffnames_free) = NULL;

		if (lj_ffnames_read(&mem.mem, &vms.at[i].build.lj.lj, vms.at[i].g, &names))
			return 1;
		for (no = 1; no < most; no++)
			print_trace(&vms.at[i], &mem.mem, names, no);
	}
	return 0;
}

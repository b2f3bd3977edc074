// SPDX-License-Identifier: BSD-2-Clause
/*
 * A call jumps through the dispatch table to the handler of the callee's first instruction
 * (vm_x64.dasc): a function header, FUNCF to FUNCCW, or, of a fast function, an instruction of its
 * own. lj_bc_ofs has all handlers' offsets from the VM's start:
 *
 *     ISLT ... FUNCF IFUNCF JFUNCF FUNCV IFUNCV JFUNCV FUNCC FUNCCW | fast functions | 0 or another
 *     |<--- offsets do not decrease ----------------------------->|
 *
 * It is found by the handlers of IFUNCF and JFUNCF, which begin with the same code:
 *
 *     mov r15, [rbx-4+k]; mov rbp, SAVE_L; lea rcx, [rdx+rcx*8]; cmp rcx, [rbp+maxstack]
 *     ja vm_growstack_f
 *
 * FUNCF counts down to a trace, and runs on into IFUNCF. FUNCV is IFUNCV. A taken `ja` leads to the
 * handler again: the probe is at this jump, whose flags say whether it will be taken. The kernel
 * emulates jumps, so that a hit costs one trap.
 *
 * A fast function has a conditional jump near its begin, too, as a rule that of the check of its
 * arguments. If all instructions up to it are in sequence, and nothing jumps between them, the probe
 * is there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "arch/insn.h"
#include "arch/lj_handlers.h"
#include "detect/calls.h"

#define VM_MOST LB_VM_TEXT
#define NEAR 14		/* instructions from a handler's begin to its first conditional jump */
#define HEADERS 8	/* FUNCF .. FUNCCW */
#define OPS_MOST 160	/* opcodes: 97 or 104 */
#define HANDLERS_MOST 8 /* that begin as IFUNCF does */

struct handlers {
	uint64_t start;
	uint32_t size;
	uint8_t bytes[VM_MOST];
	bool begins[VM_MOST]; /* an instruction */
	bool jumped[VM_MOST]; /* a direct jump leads there */
};

static bool is_near_jump(const struct insn *in)
{
	return insn_is_branch(in) || insn_is_jump(in) || (insn_is_call(in) && in->relative);
}

/* Decodes all of it: a dasm's text has no data in it. False if it does not decode. */
static bool decode_all(struct handlers *vm)
{
	struct insn in;
	uint32_t at;

	for (at = 0; at < vm->size; at += in.len) {
		int64_t target;

		if (!insn_decode(vm->bytes + at, vm->size - at, &in))
			return false;
		vm->begins[at] = true;
		if (!is_near_jump(&in))
			continue;
		target = (int64_t)at + in.len + in.imm;
		if (target >= 0 && target < vm->size)
			vm->jumped[target] = true;
	}
	return true;
}

static uint32_t find_headers(const struct handlers *vm, uint16_t at[HANDLERS_MOST])
{
	uint32_t i, n = 0;

	for (i = 0; i < vm->size && n < HANDLERS_MOST; i++)
		if (vm->begins[i] && lj_is_header(vm->bytes + i, vm->size - i))
			at[n++] = (uint16_t)i;
	return n;
}

/* True if these are the offsets of n opcodes' handlers. */
static bool is_table(const struct handlers *vm, const uint16_t *ofs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (ofs[i] >= vm->size || !vm->begins[ofs[i]] || (i && ofs[i] < ofs[i - 1]))
			return false;
	return true;
}

/* Reads lj_bc_ofs, if it has these two handlers where FUNCF's successors are. */
static int find_table(struct elf_file *elf, const struct handlers *vm, uint32_t funcf,
		      const uint16_t two[2], uint64_t *table, uint16_t ofs[OPS_MOST])
{
	uint32_t n = funcf + HEADERS;
	uint64_t at = 0;

	while (!elf_find_bytes(elf, at, two, 2 * sizeof(*two), &at)) {
		uint64_t from = at - sizeof(*ofs) * (funcf + 1);

		if (at > sizeof(*ofs) * (funcf + 1) &&
		    !elf_read(elf, from, ofs, n * sizeof(*ofs)) && is_table(vm, ofs, n)) {
			*table = from;
			return 0;
		}
		at++;
	}
	return -ENOENT;
}

/* Finds the first conditional jump from `at` on. False: another instruction ends the sequence. */
static bool find_jcc(const struct handlers *vm, uint32_t at, struct insn *in, uint32_t *found)
{
	uint32_t i, begin = at;

	for (i = 0; i < NEAR && at < vm->size; i++, at += in->len) {
		if ((at != begin && vm->jumped[at]) ||
		    !insn_decode(vm->bytes + at, vm->size - at, in))
			return false;
		if (insn_is_branch(in)) {
			*found = at;
			return true;
		}
		if (insn_is_call(in) || insn_is_jump(in) || insn_ends(in) || lj_sets_base_or_pc(in))
			return false;
	}
	return false;
}

static int add_header(const struct handlers *vm, uint32_t handler, struct call_probes *out)
{
	struct call_probe probe = {.site = LB_CALL_LJ_CHECK};
	struct insn in = {};
	uint32_t at;

	if (!find_jcc(vm, handler, &in, &at) || !lj_is_stack_check(&in))
		return -ENOENT;
	probe.addr = vm->start + at;
	return call_probes_add(out, &probe);
}

static int add_fast(const struct handlers *vm, uint32_t handler, struct call_probes *out)
{
	struct call_probe probe = {.site = LB_CALL_LJ_FAST};
	struct insn in = {};
	uint32_t at;

	probe.stepped = !find_jcc(vm, handler, &in, &at);
	probe.addr = vm->start + (probe.stepped ? handler : at);
	return call_probes_add(out, &probe);
}

static bool is_known(const struct call_probes *probes, uint64_t addr)
{
	uint32_t i;

	for (i = 0; i < probes->n; i++)
		if (probes->at[i].addr == addr)
			return true;
	return false;
}

/*
 * Adds the handlers of the fast functions, which follow the opcodes' in the table and in the text.
 * The table ends with another word: padding, or the next table's, which repeats.
 */
static int add_fast_functions(struct elf_file *elf, const struct handlers *vm, uint64_t table,
			      uint16_t last, struct call_probes *out)
{
	uint16_t ofs[2];
	uint32_t n;
	int r = 0;

	for (n = 0; !r && !elf_read(elf, table, ofs, sizeof(ofs)); n++, table += sizeof(*ofs)) {
		if (ofs[0] <= last || ofs[0] >= vm->size || !vm->begins[ofs[0]] ||
		    ofs[0] == ofs[1] || is_known(out, vm->start + ofs[0]))
			break;
		r = add_fast(vm, ofs[0], out);
	}
	return r ? r : n ? 0 : -ENOENT;
}

/* Handlers by their number from FUNCF on. FUNCF and FUNCV run on into others; JFUNCV does not exist. */
static const uint8_t headers[] = {1, 2, 4, 6, 7};

static int add_all(struct elf_file *elf, const struct handlers *vm, uint32_t funcf,
		   struct call_probes *out)
{
	uint16_t at[HANDLERS_MOST], ofs[OPS_MOST], two[2];
	uint32_t n = find_headers(vm, at), i;
	uint64_t table;
	int r = -ENOENT;

	for (i = 0; r && i + 1 < n; i++) {
		two[0] = at[i];
		two[1] = at[i + 1];
		r = find_table(elf, vm, funcf, two, &table, ofs);
	}
	for (i = 0; !r && i < sizeof(headers); i++)
		r = add_header(vm, ofs[funcf + headers[i]], out);
	n = funcf + HEADERS;
	return r ? r : add_fast_functions(elf, vm, table + n * sizeof(*ofs), ofs[n - 1], out);
}

int lj_call_probes(struct elf_file *elf, const struct vm_build *build, struct call_probes *out,
		   struct error *err)
{
	struct handlers *vm __free = calloc(1, sizeof(*vm));
	uint32_t funcf = build->build.lj.lj.bc_funcf;
	struct call_probes probes = {};

	if (!vm)
		return error_set(err, -ENOMEM, "out of memory");
	if (build->build.lj.lj.gc32) {
		error_set(err, -ENOTSUP,
			  "%s is built without GC64: bpf/count.bpf.c reads 64-bit references only",
			  build->release);
		return error_remedy(err, -ENOTSUP, "luabpf count -- COMMAND counts its calls, too");
	}
	vm->start = build->start;
	vm->size = (uint32_t)build->size;
	if (build->size > VM_MOST || funcf + HEADERS > OPS_MOST ||
	    elf_read(elf, vm->start, vm->bytes, vm->size) || !decode_all(vm) ||
	    add_all(elf, vm, funcf, &probes))
		return error_set(err, -ENOTSUP, "%s: the handlers of its calls were not found",
				 build->release);
	*out = probes;
	return 0;
}

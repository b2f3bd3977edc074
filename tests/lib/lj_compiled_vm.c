// SPDX-License-Identifier: BSD-2-Clause
#include "lj_compiled_vm.h"

#include <string.h>

#include "lua/lj/bc.h"

#define SZMCODE 0x180
#define IR_NINS 12
#define J_SIZE 1000 /* of jit_State before J.trace, at most */
#define SNAPBUF (LJI_HEAP + 0x100)
#define SNAPMAPBUF (LJI_HEAP + 0x200)

static bool is_2017(const struct lj_layout *lj)
{
	return !lj->mcofs && lj->str_len == LJ_STR_LEN_2017;
}

static void put_jump(struct lj_image *img, uint64_t func, uint32_t pos, uint8_t op, uint32_t to)
{
	lji_put32(img, lji_bc(img, func, pos), op | 3 << 8 | (to + 0x8000 - pos - 1) << 16);
}

/* Line firstline + i / 4 for instruction i. */
static uint64_t new_function(struct lj_image *img, int firstline, uint64_t *list)
{
	uint64_t func = lji_function(img, firstline), pt = lji_proto_of(img, func);
	uint64_t lines = lji_get64(img, pt + LJ_PROTO_LINEINFO);

	for (uint32_t i = 1; i < 64; i++)
		lji_put8(img, lines + i - 1, (uint8_t)(i / 4));
	lji_put64(img, pt, *list);
	lji_put64(img, func, pt);
	*list = func;
	return func;
}

void lj_compiled_vm_penalise(struct lj_compiled_vm *vm, uint64_t pc, uint16_t val, uint16_t reason)
{
	uint64_t slot = vm->penalty + (uint64_t)LJ_PENALTY_SIZE * vm->npenalties++;

	lji_put64(&vm->img, slot + LJ_PENALTY_PC, pc);
	lji_put16(&vm->img, slot + LJ_PENALTY_VAL, val);
	lji_put16(&vm->img, slot + LJ_PENALTY_REASON, reason);
	lji_put32(&vm->img, vm->penalty + LJ_PENALTY_SIZE * LJ_PENALTY_SLOTS,
		  vm->npenalties % LJ_PENALTY_SLOTS);
}

void lj_compiled_vm_link(struct lj_compiled_vm *vm, const struct lji_trace *t, uint16_t link,
			 uint8_t type)
{
	bool old = is_2017(&vm->img.lj);

	lji_put16(&vm->img, t->addr + LJ_TRACE_LINK, link);
	lji_put8(&vm->img, t->addr + (old ? LJ_TRACE_LINKTYPE_2017 : LJ_TRACE_LINKTYPE), type);
}

void lj_compiled_vm_count(struct lj_compiled_vm *vm, const struct lji_trace *t, uint32_t snap,
			  uint8_t count)
{
	const struct lj_layout *lj = &vm->img.lj;
	uint32_t nent = is_2017(lj) ? LJ_SNAP_NENT - 4 : LJ_SNAP_NENT - 2 * !lj->mcofs;
	uint32_t size = is_2017(lj) ? LJ_SNAP_SIZE_2017 : LJ_SNAP_SIZE;

	lji_put8(&vm->img, t->snap + (uint64_t)size * snap + nent + 1, count);
}

static struct lji_trace new_trace(struct lj_compiled_vm *vm, uint32_t no, uint64_t func,
				  uint32_t pos)
{
	struct lj_image *img = &vm->img;
	struct lji_trace t =
		lji_trace(img, no, lji_proto_of(img, func), lji_bc(img, func, pos), SZMCODE, 0);

	lji_put32(img, t.addr + LJ_TRACE_NINS, LJ_REF_BIAS + IR_NINS);
	lji_const(img, &t, 1);
	lji_snap(img, &t, 0, lji_bc(img, func, pos), 0, NULL, 0);
	return t;
}

static void add_traces(struct lj_compiled_vm *vm)
{
	struct lj_image *img = &vm->img;

	vm->root = new_trace(vm, 1, vm->main, CV_TRACED);
	lji_snap(img, &vm->root, 0x40, lji_bc(img, vm->main, CV_SIDE), 0, NULL, 0);
	lji_snap(img, &vm->root, 0x80, lji_bc(img, vm->callee, 8), 0, NULL, 0);
	lj_compiled_vm_link(vm, &vm->root, 1, 2);
	lj_compiled_vm_count(vm, &vm->root, 1, 255);
	lj_compiled_vm_count(vm, &vm->root, 2, 7);
	vm->side = new_trace(vm, 2, vm->main, CV_SIDE);
	lji_put64(img, vm->side.ir + 8ULL * LJ_REF_BIAS, 1 | 1 << 16);
	lji_put16(img, vm->side.addr + LJ_TRACE_ROOT, 1);
	lj_compiled_vm_link(vm, &vm->side, 1, 1);
	vm->stitched = new_trace(vm, 5, vm->callee, 4);
	lji_put64(img, vm->stitched.ir + 8ULL * LJ_REF_BIAS, 1 << 16);
	lj_compiled_vm_link(vm, &vm->stitched, 0, 7);
}

/* jit_State: the buffers that cur has, too, and the abort of the loop at CV_PENALISED. */
static void add_recording(struct lj_compiled_vm *vm)
{
	struct lj_image *img = &vm->img;
	uint64_t trace = img->g + img->lj.g2trace;
	uint64_t errinfo =
		trace + img->lj.j_parent + (img->lj.mcofs ? LJ_J_ERRINFO : LJ_J_ERRINFO_2020);
	double fnew = CV_FNEW;

	vm->cur = (trace - J_SIZE + 400) & ~7ULL;
	lji_put64(img, trace + LJ_J_SNAPBUF, SNAPBUF);
	lji_put64(img, trace + LJ_J_SNAPMAPBUF, SNAPMAPBUF);
	lji_put64(img, vm->cur + LJ_TRACE_SNAP, SNAPBUF);
	lji_put64(img, vm->cur + LJ_TRACE_SNAPMAP, SNAPMAPBUF);
	lji_put64(img, vm->cur + LJ_TRACE_STARTPC, lji_bc(img, vm->main, CV_PENALISED));
	lji_put64(img, vm->cur + LJ_J_PC, lji_bc(img, vm->main, CV_CAUSE));
	lji_put64(img, vm->cur + LJ_J_FN, vm->main);
	lji_put64(img, vm->cur + LJ_J_PT, lji_proto_of(img, vm->main));
	memcpy(lji_at(img, errinfo, 8), &fnew, 8);
}

void lj_compiled_vm_init(struct lj_compiled_vm *vm, const struct lj_layout *lj)
{
	struct lj_image *img = &vm->img;
	uint64_t list = 0;

	memset(vm, 0, sizeof(*vm));
	lji_init(img, lj);
	list = img->main_L;
	vm->main = new_function(img, 10, &list);
	vm->callee = new_function(img, 50, &list);
	vm->off = new_function(img, 90, &list);
	lji_put64(img, img->g + lj->gc_total + LJ_GC_ROOT_BEHIND_TOTAL, list);
	vm->penalty = img->g + lj->g2trace + lj->j_parent -
		      (lj->j_parent == 2640 || lj->g2disp == 3912 ? LJ_PENALTY_BEFORE_PARENT_2020
								  : LJ_PENALTY_BEFORE_PARENT);
	lji_put32(img, lji_bc(img, vm->main, CV_TRACED), LJ_BC_JFORL | 3 << 8 | 1 << 16);
	put_jump(img, vm->main, CV_PENALISED, LJ_BC_FORL, CV_PENALISED - 5);
	put_jump(img, vm->main, CV_BLACKLISTED, LJ_BC_IFORL, CV_BLACKLISTED - 5);
	put_jump(img, vm->main, CV_WHILE, LJ_BC_ILOOP, CV_WHILE + 6);
	put_jump(img, vm->off, CV_OFF, LJ_BC_IFORL, CV_OFF - 5);
	lji_ins(img, vm->callee, 0, lj->bc_funcf + 1, 3);
	lji_put8(img, lji_proto_of(img, vm->main) + LJ_PROTO_FLAGS, LJ_PROTO_ILOOP);
	lji_put8(img, lji_proto_of(img, vm->callee) + LJ_PROTO_FLAGS, LJ_PROTO_ILOOP);
	lji_put8(img, lji_proto_of(img, vm->off) + LJ_PROTO_FLAGS, LJ_PROTO_ILOOP | LJ_PROTO_NOJIT);
	lj_compiled_vm_penalise(vm, lji_bc(img, vm->main, CV_PENALISED), 1152, CV_NYIBC);
	lj_compiled_vm_penalise(vm, lji_bc(img, vm->main, CV_BLACKLISTED), 40000, CV_LLEAVE);
	lj_compiled_vm_penalise(vm, lji_bc(img, vm->main, CV_TRACED), 144, CV_LLEAVE);
	add_traces(vm);
	add_recording(vm);
}

void lj_compiled_vm_free(struct lj_compiled_vm *vm)
{
	lji_free(&vm->img);
}

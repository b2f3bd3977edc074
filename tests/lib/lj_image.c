// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lj_image.h"

#include <stdbool.h>

#define LJI_STUBS 0xe00 /* of exits, in a trace's 4 KB of machine code */
#define L_SIZE 112	/* luajit2; others have 96 */
#define GG_SIZE 8192
#define IR_BIAS 0x8000u /* REF_BIAS: constants lie below */
#define IR_CONSTS 64
#define BC_MOV 18

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static uint8_t *add_range(struct lj_image *img, uint64_t addr, size_t size)
{
	void *zero = need(calloc(1, size));

	if (mem_image_add(&img->mem, addr, zero, size))
		abort();
	free(zero);
	return img->mem.ranges[img->mem.n - 1].bytes;
}

void *lji_at(struct lj_image *img, uint64_t addr, size_t size)
{
	if (addr - img->heap_at < LJI_HEAP_SIZE && addr - img->heap_at + size <= LJI_HEAP_SIZE)
		return img->heap + (addr - img->heap_at);
	if (addr - LJI_CSTACK < LJI_CSTACK_SIZE && addr - LJI_CSTACK + size <= LJI_CSTACK_SIZE)
		return img->cstack + (addr - LJI_CSTACK);
	if (addr - LJI_VM < LJI_VM_SIZE && addr - LJI_VM + size <= LJI_VM_SIZE)
		return img->vm + (addr - LJI_VM);
	if (addr - LJI_MCODE < LJI_MCODE_SIZE && addr - LJI_MCODE + size <= LJI_MCODE_SIZE)
		return img->mcode + (addr - LJI_MCODE);
	fprintf(stderr, "lj_image: %#llx is in no range\n", (unsigned long long)addr);
	abort();
}

void lji_put64(struct lj_image *img, uint64_t addr, uint64_t value)
{
	memcpy(lji_at(img, addr, sizeof(value)), &value, sizeof(value));
}

void lji_put32(struct lj_image *img, uint64_t addr, uint32_t value)
{
	memcpy(lji_at(img, addr, sizeof(value)), &value, sizeof(value));
}

void lji_put16(struct lj_image *img, uint64_t addr, uint16_t value)
{
	memcpy(lji_at(img, addr, sizeof(value)), &value, sizeof(value));
}

void lji_put8(struct lj_image *img, uint64_t addr, uint8_t value)
{
	memcpy(lji_at(img, addr, sizeof(value)), &value, sizeof(value));
}

uint64_t lji_get64(struct lj_image *img, uint64_t addr)
{
	uint64_t value;

	memcpy(&value, lji_at(img, addr, sizeof(value)), sizeof(value));
	return value;
}

static size_t ref_size(const struct lj_image *img)
{
	return img->lj.gc32 ? 4 : 8;
}

void lji_put_ref(struct lj_image *img, uint64_t addr, uint64_t ref)
{
	memcpy(lji_at(img, addr, ref_size(img)), &ref, ref_size(img));
}

uint64_t lji_get_ref(struct lj_image *img, uint64_t addr)
{
	uint64_t ref = 0;

	memcpy(&ref, lji_at(img, addr, ref_size(img)), ref_size(img));
	return ref;
}

void lji_put_func(struct lj_image *img, uint64_t base, int32_t type, uint64_t ref)
{
	if (img->lj.gc32)
		lji_put32(img, base - 8, (uint32_t)ref);
	else
		lji_put64(img, base - 16, LJI_TV(type, ref));
}

void lji_put_link(struct lj_image *img, uint64_t base, uint64_t link)
{
	if (img->lj.gc32)
		lji_put32(img, base - 4, (uint32_t)link);
	else
		lji_put64(img, base - 8, link);
}

uint64_t lji_func_at(struct lj_image *img, uint64_t base)
{
	return LJ_TV_GCPTR(lji_get_ref(img, base - LJI_OFF(img, FRAME_BYTES)));
}

uint64_t lji_alloc(struct lj_image *img, size_t size)
{
	size_t at = img->used;

	size = (size + 15) & ~(size_t)15;
	if (at + size > LJI_HEAP_SIZE || img->nobjects == LJI_OBJECTS) {
		fprintf(stderr, "lj_image: the heap is full\n");
		abort();
	}
	img->used += size;
	img->objects[img->nobjects].offset = (uint32_t)at;
	img->objects[img->nobjects++].size = (uint32_t)size;
	return img->heap_at + at;
}

static void init_thread(struct lj_image *img, uint64_t L)
{
	uint64_t stack = lji_alloc(img, 8 * LJI_SLOTS), base = stack + LJI_OFF(img, FRAME_BYTES);

	lji_put8(img, L + LJI_OFF(img, L_GCT), LJ_GCT_THREAD);
	lji_put_ref(img, L + LJI_OFF(img, L_GLREF), img->g);
	lji_put_ref(img, L + LJI_OFF(img, L_STACK), stack);
	lji_put64(img, L + LJI_OFF(img, L_BASE), base);
	lji_put64(img, L + LJI_OFF(img, L_TOP), base);
	lji_put_ref(img, L + LJI_OFF(img, L_MAXSTACK), stack + 8 * (LJI_SLOTS - 64));
	lji_put_func(img, base, LJ_TTHREAD, L);
	lji_put_link(img, base, img->lj.gc32 ? (uint32_t)LJ_TTHREAD : ~0ULL);
}

void lji_new_vm(struct lj_image *img)
{
	uint64_t gg = lji_alloc(img, GG_SIZE);

	img->main_L = gg;
	img->g = gg + L_SIZE;
	init_thread(img, gg);
	img->traces = lji_alloc(img, ref_size(img) * 16);
	lji_put64(img, img->g + img->lj.g2trace, img->traces);
	lji_put32(img, img->g + img->lj.g2trace + 12, 16);
}

void lji_init(struct lj_image *img, const struct lj_layout *lj)
{
	memset(img, 0, sizeof(*img));
	mem_image_init(&img->mem);
	img->lj = *lj;
	img->heap_at = lj->gc32 ? LJI_HEAP32 : LJI_HEAP;
	img->heap = add_range(img, img->heap_at, LJI_HEAP_SIZE);
	img->cstack = add_range(img, LJI_CSTACK, LJI_CSTACK_SIZE);
	img->vm = add_range(img, LJI_VM, LJI_VM_SIZE);
	img->mcode = add_range(img, LJI_MCODE, LJI_MCODE_SIZE);
	img->sp = LJI_CSTACK_END;
	lji_c_code(img, 128); /* environment, main() */
	lji_new_vm(img);
}

void lji_free(struct lj_image *img)
{
	mem_image_clear(&img->mem);
}

uint64_t lji_str(struct lj_image *img, const char *text)
{
	size_t len = strlen(text);
	uint64_t str = lji_alloc(img, LJ_STR_SIZE + len + 1);
	uint32_t hash = 5381;
	const char *p;

	for (p = text; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	lji_put8(img, str + LJI_OFF(img, STR_GCT), LJ_GCT_STR);
	lji_put32(img, str + LJI_OFF(img, STR_HASH), hash);
	lji_put32(img, str + img->lj.str_len, (uint32_t)len);
	memcpy(lji_at(img, str + lj_str_text(&img->lj), len), text, len);
	return str;
}

/* head | bytecode | references to two constants, k | lines | names of upvalues and locals */
uint64_t lji_proto(struct lj_image *img, const char *chunk, int firstline, uint32_t sizebc)
{
	static const char names[] = "up\0value\0local\0\1\5";
	const uint32_t ref = (uint32_t)ref_size(img), head = LJI_OFF(img, PROTO_SIZE);
	uint32_t k = (head + 4 * sizebc + 2 * ref + 7) & ~7u, i;
	uint32_t lines = k, uv = lines + sizebc - 1, size = uv + sizeof(names);
	uint64_t pt = lji_alloc(img, size), first = lji_str(img, "first");

	lji_put8(img, pt + LJI_OFF(img, PROTO_GCT), LJ_GCT_PROTO);
	lji_put8(img, pt + LJI_OFF(img, PROTO_FRAMESIZE), 32);
	lji_put32(img, pt + LJI_OFF(img, PROTO_SIZEBC), sizebc);
	lji_put32(img, pt + LJI_OFF(img, PROTO_SIZEPT), size);
	lji_put32(img, pt + LJI_OFF(img, PROTO_SIZEKGC), 2);
	lji_put8(img, pt + LJI_OFF(img, PROTO_SIZEUV), 2);
	lji_put_ref(img, pt + LJI_OFF(img, PROTO_K), pt + k);
	lji_put_ref(img, pt + LJI_OFF(img, PROTO_LINEINFO), pt + lines);
	lji_put_ref(img, pt + LJI_OFF(img, PROTO_UVINFO), pt + uv);
	lji_put_ref(img, pt + LJI_OFF(img, PROTO_VARINFO), pt + uv + 9);
	lji_put_ref(img, pt + LJI_OFF(img, PROTO_CHUNKNAME), lji_str(img, chunk));
	lji_put32(img, pt + LJI_OFF(img, PROTO_FIRSTLINE), (uint32_t)firstline);
	lji_put32(img, pt + LJI_OFF(img, PROTO_NUMLINE), 20);
	lji_put32(img, pt + head, img->lj.bc_funcf | 32 << 8);
	for (i = 1; i < sizebc; i++)
		lji_put32(img, pt + head + 4ULL * i, BC_MOV | 3 << 8);
	lji_put_ref(img, pt + k - ref, first);
	lji_put_ref(img, pt + k - 2 * ref, first);
	memcpy(lji_at(img, pt + uv, sizeof(names)), names, sizeof(names));
	return pt;
}

static uint64_t new_func(struct lj_image *img, uint8_t ffid, uint64_t pc)
{
	uint64_t func = lji_alloc(img, LJ_FUNC_READ);

	lji_put8(img, func + LJI_OFF(img, FUNC_GCT), LJ_GCT_FUNC);
	lji_put8(img, func + LJI_OFF(img, FUNC_FFID), ffid);
	lji_put_ref(img, func + LJI_OFF(img, FUNC_PC), pc);
	return func;
}

uint64_t lji_lua(struct lj_image *img, uint64_t proto)
{
	return new_func(img, 0, proto + LJI_OFF(img, PROTO_SIZE));
}

/* C and fast functions have one instruction, in global_State or in GG_State. */
static uint64_t func_header(struct lj_image *img, uint8_t op)
{
	uint64_t bc = lji_alloc(img, 16);

	lji_put32(img, bc, op | 7 << 8);
	return bc;
}

uint64_t lji_cfunc(struct lj_image *img, uint64_t f)
{
	uint64_t func = new_func(img, 1, func_header(img, img->lj.bc_funcf + 6));

	lji_put64(img, func + LJI_OFF(img, FUNC_F), f);
	return func;
}

uint64_t lji_ff(struct lj_image *img, uint8_t ffid)
{
	return new_func(img, ffid, func_header(img, (uint8_t)(img->lj.bc_funcf + 8 + ffid)));
}

uint64_t lji_function(struct lj_image *img, int firstline)
{
	return lji_lua(img, lji_proto(img, "@test.lua", firstline, 64));
}

uint64_t lji_proto_of(struct lj_image *img, uint64_t func)
{
	return lji_get_ref(img, func + LJI_OFF(img, FUNC_PC)) - LJI_OFF(img, PROTO_SIZE);
}

uint64_t lji_bc(struct lj_image *img, uint64_t func, uint32_t pos)
{
	return lji_get_ref(img, func + LJI_OFF(img, FUNC_PC)) + 4ULL * pos;
}

uint64_t lji_ins(struct lj_image *img, uint64_t func, uint32_t pos, uint8_t op, uint8_t a)
{
	uint64_t at = lji_bc(img, func, pos);

	if (img->lj.v20 && op >= LJ_OP_CALLM)
		op -= LJ_OPS_20;
	lji_put32(img, at, (uint32_t)op | (uint32_t)a << 8 | 2u << 16 | 2u << 24);
	return at;
}

uint64_t lji_thread(struct lj_image *img)
{
	uint64_t L = lji_alloc(img, L_SIZE);

	init_thread(img, L);
	return L;
}

struct lji_stack lji_stack(struct lj_image *img, uint64_t L)
{
	return (struct lji_stack){.L = L,
				  .base = lji_get_ref(img, L + LJI_OFF(img, L_STACK)) +
					  LJI_OFF(img, FRAME_BYTES)};
}

static void push(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots,
		 uint64_t link)
{
	s->base += 8ULL * slots;
	lji_put_func(img, s->base, LJ_TFUNC, func);
	lji_put_link(img, s->base, link);
}

void lji_push(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots,
	      uint32_t type)
{
	push(img, s, func, slots, 8ULL * slots | type);
}

void lji_call(struct lj_image *img, struct lji_stack *s, uint64_t caller, uint32_t pos, uint8_t a,
	      uint64_t func)
{
	push(img, s, func, a + lji_frame_slots(img),
	     lji_ins(img, caller, pos, LJ_OP_CALLM + 1, a) + 4);
}

void lji_cont(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots,
	      uint64_t cont, uint64_t contpc)
{
	lji_push(img, s, func, slots, LJ_FRAME_CONT);
	if (img->lj.gc32) { /* counted from lj_vm_asm_begin */
		lji_put32(img, s->base - 16, (uint32_t)(cont > 1 ? cont - LJI_VM : cont));
		lji_put32(img, s->base - 12, (uint32_t)contpc);
		return;
	}
	lji_put64(img, s->base - 32, cont);
	lji_put64(img, s->base - 24, contpc);
}

void lji_vararg(struct lj_image *img, struct lji_stack *s, uint64_t func, uint32_t slots)
{
	lji_push(img, s, func, slots, LJ_FRAME_VARG);
}

void lji_sync(struct lj_image *img, const struct lji_stack *s)
{
	lji_put64(img, s->L + LJI_OFF(img, L_BASE), s->base);
	lji_put64(img, s->L + LJI_OFF(img, L_TOP), s->base + 32);
}

void lji_c_code(struct lj_image *img, uint32_t words)
{
	uint32_t i;

	for (i = 0; i < words; i++) {
		img->sp -= 8;
		/* locals, and a few return addresses into the library */
		lji_put64(img, img->sp, i % 8 == 7 ? LJI_TEXT + 0x40000 + i : i * 3);
	}
}

uint64_t lji_cframe(struct lj_image *img, uint64_t L, int32_t nres, uint64_t pc, uint32_t flags)
{
	uint64_t prev = flags & LJI_RESUME ? 0 : lji_get64(img, L + LJI_OFF(img, L_CFRAME));
	uint64_t cframe = img->sp - img->lj.cframe_size;

	lji_put32(img, cframe, 1); /* MULTRES */
	lji_put32(img, cframe + LJI_OFF(img, CFRAME_NRES), (uint32_t)nres);
	lji_put_ref(img, cframe + LJI_OFF(img, CFRAME_L), L);
	lji_put_ref(img, cframe + LJI_OFF(img, CFRAME_PC), pc);
	lji_put64(img, cframe + img->lj.cframe_prev, prev);
	lji_put64(img, cframe + img->lj.cframe_prev + 8, img->g + img->lj.g2disp);
	lji_put64(img, cframe + img->lj.cframe_size - 8, LJI_TEXT + 0x30000);
	lji_put64(img, L + LJI_OFF(img, L_CFRAME), cframe | (flags & LJI_RESUME));
	img->sp = cframe;
	return cframe;
}

void lji_vm_calls(struct lj_image *img, uint32_t site)
{
	img->sp -= 8;
	lji_put64(img, img->sp, LJI_VM + site);
}

void lji_set_pc(struct lj_image *img, uint64_t cframe, uint64_t pc)
{
	lji_put_ref(img, cframe + LJI_OFF(img, CFRAME_PC), pc);
}

void lji_run(struct lj_image *img, uint64_t L)
{
	lji_put_ref(img, img->g + img->lj.cur_L, L);
}

void lji_vmstate(struct lj_image *img, int32_t state)
{
	if (state < LJ_VMST_INTERP)
		state -= img->lj.interp_states - 1;
	lji_put32(img, img->g + img->lj.vmstate, (uint32_t)state);
}

void lji_jit_base(struct lj_image *img, uint64_t base)
{
	lji_put_ref(img, img->g + img->lj.jit_base, base);
}

void lji_number(struct lj_image *img, uint32_t no, uint64_t addr)
{
	lji_put_ref(img, img->traces + ref_size(img) * no, addr);
}

struct lji_trace lji_trace(struct lj_image *img, uint32_t no, uint64_t startpt, uint64_t startpc,
			   uint32_t szmcode, uint16_t spadjust)
{
	struct lji_trace t = {.no = no, .mcode = LJI_MCODE + 0x1000ULL * no};

	t.addr = lji_alloc(img, 128);
	t.ir = lji_alloc(img, 16 * IR_CONSTS + 16) - 8ULL * (IR_BIAS - 2 * IR_CONSTS);
	t.snap = lji_alloc(img, LJ_SNAP_SIZE * LJI_SNAPS);
	t.snapmap = lji_alloc(img, 4 * 32 * LJI_SNAPS);
	lji_number(img, no, t.addr);
	lji_put8(img, t.addr + LJI_OFF(img, TRACE_GCT), LJ_GCT_TRACE);
	lji_put64(img, t.addr + LJI_OFF(img, TRACE_IR), t.ir);
	lji_put64(img, t.addr + LJI_OFF(img, TRACE_SNAP), t.snap);
	lji_put64(img, t.addr + LJI_OFF(img, TRACE_SNAPMAP), t.snapmap);
	lji_put_ref(img, t.addr + LJI_OFF(img, TRACE_STARTPT), startpt);
	lji_put_ref(img, t.addr + LJI_OFF(img, TRACE_STARTPC), startpc);
	lji_put32(img, t.addr + LJI_OFF(img, TRACE_SZMCODE), szmcode);
	lji_put64(img, t.addr + LJI_OFF(img, TRACE_MCODE), t.mcode);
	lji_put16(img, t.addr + LJI_OFF(img, TRACE_SPADJUST), spadjust);
	lji_put16(img, t.addr + LJI_OFF(img, TRACE_TRACENO), (uint16_t)no);
	lji_put16(img, t.addr + LJI_OFF(img, TRACE_ROOT), 0);
	return t;
}

uint32_t lji_const(struct lj_image *img, struct lji_trace *t, uint64_t value)
{
	const uint32_t size =
		img->lj.gc32 ? 1 : 2; /* instructions: the value is in it, or follows */
	uint32_t ref = IR_BIAS - 4 - size * t->nk++; /* above are REF_TRUE and its like */

	lji_put_ref(img, t->ir + 8ULL * (ref + size - 1), value);
	lji_put32(img, t->addr + LJI_OFF(img, TRACE_NK), ref);
	return ref;
}

uint32_t lji_const_proto(struct lj_image *img, struct lji_trace *t, uint64_t proto)
{
	uint32_t ref = lji_const(img, t, proto);

	lji_put32(img, t->ir + 8ULL * ref + 4, LJ_IRT_PROTO);
	return ref;
}

void lji_parent(struct lj_image *img, const struct lji_trace *t, uint16_t no)
{
	lji_put64(img, t->ir + 8ULL * IR_BIAS, no);
}

/* How builds without mcofs know a snapshot's machine code: by the branch of a guard, to its exit's
 * stub. */
static void put_guard(struct lj_image *img, const struct lji_trace *t, uint32_t at, uint32_t exitno)
{
	const uint32_t stub = LJI_STUBS + 4 * exitno;
	const uint8_t push[] = {0x6a, (uint8_t)exitno, 0x6a, (uint8_t)(exitno >> 8)};

	memcpy(lji_at(img, t->mcode + stub, sizeof(push)), push, sizeof(push));
	lji_put8(img, t->mcode + at, 0x0f);
	lji_put8(img, t->mcode + at + 1, 0x84);
	lji_put32(img, t->mcode + at + 2, stub - (at + 6));
}

/* Writes snapshot t->nsnap, of the layout's shape (enum lj_snaps): n entries, and all of its words. */
static void put_snap(struct lj_image *img, const struct lji_trace *t, uint16_t mcofs, uint32_t n,
		     uint32_t words)
{
	bool is_2017 = !img->lj.mcofs && img->lj.str_len == LJI_OFF(img, STR_LEN_2017);
	uint64_t snap = t->snap + (uint64_t)(is_2017 ? LJ_SNAP_SIZE_2017 : LJ_SNAP_SIZE) * t->nsnap;

	if (is_2017) {
		lji_put16(img, snap + LJ_SNAP_MAPOFS, (uint16_t)t->nmap);
		lji_put8(img, snap + LJ_SNAP_NENT - 4, (uint8_t)n);
		lji_put16(img, t->addr + LJI_OFF(img, TRACE_NSNAPMAP), (uint16_t)(t->nsnap + 1));
		lji_put16(img, t->addr + LJI_OFF(img, TRACE_NSNAPMAP) + 2,
			  (uint16_t)(t->nmap + words));
	} else {
		lji_put32(img, snap + LJ_SNAP_MAPOFS, t->nmap);
		lji_put8(img, snap + LJ_SNAP_NENT - 2 * !img->lj.mcofs, (uint8_t)n);
		lji_put16(img, t->addr + LJI_OFF(img, TRACE_NSNAP), (uint16_t)(t->nsnap + 1));
		lji_put32(img, t->addr + LJI_OFF(img, TRACE_NSNAPMAP), t->nmap + words);
	}
	if (img->lj.mcofs)
		lji_put16(img, snap + LJ_SNAP_MCOFS, mcofs);
	else if (t->nsnap && mcofs)
		put_guard(img, t, mcofs - 1u, t->nsnap - 1);
}

static uint32_t frame_entry(struct lj_image *img, struct lji_trace *t, uint32_t slot,
			    uint64_t value)
{
	return slot << 24 | LJ_SNAP_FRAME | lji_const(img, t, value);
}

/*
 * The same of GC32: one entry for each frame, the pc, and the links, that of the topmost frame
 * first. entries are GC64's, pairs of function and link; before those of a metamethod its
 * continuation and the pc of that. Returns how many words it has; *n: of entries.
 */
static uint32_t put_map32(struct lj_image *img, struct lji_trace *t, uint64_t pc,
			  const struct lji_entry *entries, uint32_t *n)
{
	uint32_t map[LJI_SNAPS], links[LJI_SNAPS], nmap = 0, nlinks = 0, slot = 0, contpc = 0, i;

	for (i = 0; i + 1 < *n; i += 2) {
		uint64_t value = entries[i].value, link = entries[i + 1].value;

		if (LJ_TV_TYPE(value) != LJ_TFUNC) {
			contpc = (uint32_t)link;
			continue;
		}
		if (!entries[i].slot) /* after a tail call: the trace's own frame */
			link = 0;
		else if ((link & 3) == LJ_FRAME_LUA)
			slot += 1u + *(uint8_t *)lji_at(img, link - 3, 1);
		else
			slot += (uint32_t)link >> 3;
		map[nmap++] = frame_entry(img, t, slot, LJ_TV_GCPTR(value));
		if (link && (link & 7) == LJ_FRAME_CONT)
			links[nlinks++] = contpc;
		if (link)
			links[nlinks++] = (uint32_t)link;
	}
	*n = nmap;
	map[nmap++] = (uint32_t)pc;
	while (nlinks)
		map[nmap++] = links[--nlinks];
	for (i = 0; i < nmap; i++)
		lji_put32(img, t->snapmap + 4ULL * (t->nmap + i), map[i]);
	return nmap;
}

static uint32_t put_map(struct lj_image *img, struct lji_trace *t, uint64_t pc, uint8_t slot,
			const struct lji_entry *entries, uint32_t n)
{
	uint64_t map = t->snapmap + 4ULL * t->nmap;
	uint32_t i;

	for (i = 0; i < n; i++)
		lji_put32(img, map + 4ULL * i,
			  frame_entry(img, t, entries[i].slot, entries[i].value));
	pc = pc << 8 | slot;
	memcpy(lji_at(img, map + 4ULL * n, 8), &pc, 8);
	return n + 2;
}

void lji_snap(struct lj_image *img, struct lji_trace *t, uint16_t mcofs, uint64_t pc, uint8_t slot,
	      const struct lji_entry *entries, uint32_t n)
{
	uint32_t words = img->lj.gc32 ? put_map32(img, t, pc, entries, &n)
				      : put_map(img, t, pc, slot, entries, n);

	put_snap(img, t, mcofs, n, words);
	t->nmap += words;
	t->nsnap++;
}

void lji_exit(struct lj_image *img, uint32_t parent, uint32_t exitno)
{
	lji_put32(img, img->g + img->lj.g2trace + img->lj.j_parent, parent);
	lji_put32(img, img->g + img->lj.g2trace + img->lj.j_exitno, exitno);
}

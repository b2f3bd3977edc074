// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "puc_image.h"

/* What the layout does not name, as no walker reads it. The rows agree on these. */
enum {
	GC_HEADER = 16,
	JMP_BUF = 200,
	EXTRA_STACK = 5,
	CI51_BASE = 0,
	CI51_TOP = 16,
	CI_TOP = 8,
	COLLECTABLE = 0x40,
	SLOTS_OF_A_CALL = 6,
	OK = 0,
	CALL_REL32 = 0xe8,
	CALL_RAX = 0xd0ff,
};

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static uint8_t *add_range(struct puc_image *img, uint64_t addr, size_t size)
{
	void *zero = need(calloc(1, size));

	if (mem_image_add(&img->mem, addr, zero, size))
		abort();
	free(zero);
	return img->mem.ranges[img->mem.n - 1].bytes;
}

void *pui_at(struct puc_image *img, uint64_t addr, size_t size)
{
	if (addr - PUI_HEAP < PUI_HEAP_SIZE && addr - PUI_HEAP + size <= PUI_HEAP_SIZE)
		return img->heap + (addr - PUI_HEAP);
	if (addr - PUI_CSTACK < PUI_CSTACK_SIZE && addr - PUI_CSTACK + size <= PUI_CSTACK_SIZE)
		return img->cstack + (addr - PUI_CSTACK);
	if (addr - PUI_TEXT < PUI_TEXT_USED && addr - PUI_TEXT + size <= PUI_TEXT_USED)
		return img->text + (addr - PUI_TEXT);
	fprintf(stderr, "puc_image: %#llx is in no range\n", (unsigned long long)addr);
	abort();
}

void pui_put(struct puc_image *img, uint64_t addr, uint32_t size, uint64_t value)
{
	memcpy(pui_at(img, addr, size), &value, size);
}

uint64_t pui_get(struct puc_image *img, uint64_t addr, uint32_t size)
{
	uint64_t value = 0;

	memcpy(&value, pui_at(img, addr, size), size);
	return value;
}

static uint32_t junk(struct puc_image *img)
{
	img->noise = img->noise * 1103515245u + 12345u;
	return img->noise >> 8;
}

uint64_t pui_alloc(struct puc_image *img, size_t size)
{
	size_t at = img->used, i;

	size = (size + 15) & ~(size_t)15;
	if (at + size > PUI_HEAP_SIZE || img->nobjects == PUI_OBJECTS) {
		fprintf(stderr, "puc_image: the heap is full\n");
		abort();
	}
	img->used += size;
	img->objects[img->nobjects].offset = (uint32_t)at;
	img->objects[img->nobjects++].size = (uint32_t)size;
	for (i = 0; i < size; i++)
		img->heap[at + i] = (uint8_t)junk(img);
	return PUI_HEAP + at;
}

static void put_tt(struct puc_image *img, uint64_t gc, uint8_t tt)
{
	pui_put(img, gc + PUC_GC_TT, 1, tt);
}

/* ---- objects --------------------------------------------------------------------------------- */

uint64_t pui_proto(struct puc_image *img, int linedefined, uint32_t sizecode)
{
	const struct puc_layout *l = &img->puc;
	uint64_t p = pui_alloc(img, l->p_size), code = pui_alloc(img, 4ULL * sizecode);

	put_tt(img, p, l->tt_proto);
	pui_put(img, p + l->p_code, 8, code);
	pui_put(img, p + l->p_sizecode, 4, sizecode);
	pui_put(img, p + l->p_linedefined, 4, (uint32_t)linedefined);
	pui_put(img, p + l->p_lastlinedefined, 4, (uint32_t)linedefined + 20);
	pui_put(img, p + l->p_source, 8, pui_alloc(img, 48));
	return p;
}

static uint64_t new_closure(struct puc_image *img, uint8_t tt, uint8_t is_c, uint64_t p)
{
	uint64_t c = pui_alloc(img, img->puc.closure_p + 16u);

	/* where the header has isC, it has one type for both kinds */
	put_tt(img, c, img->puc.closure_isC == PUC_NONE ? tt : img->puc.tt_lcl);
	if (img->puc.closure_isC != PUC_NONE)
		pui_put(img, c + img->puc.closure_isC, 1, is_c);
	pui_put(img, c + img->puc.closure_p, 8, p);
	return c;
}

static uint8_t collectable(const struct puc_image *img, uint8_t tt)
{
	return img->puc.version == 51 ? tt : tt | COLLECTABLE;
}

struct pui_fn pui_lua(struct puc_image *img, uint64_t proto)
{
	return (struct pui_fn){.value = new_closure(img, img->puc.tt_lcl, 0, proto),
			       .tt = collectable(img, img->puc.tt_lcl)};
}

struct pui_fn pui_cclosure(struct puc_image *img, uint64_t f)
{
	return (struct pui_fn){.value = new_closure(img, img->puc.tt_ccl, 1, f),
			       .tt = collectable(img, img->puc.tt_ccl)};
}

struct pui_fn pui_light(struct puc_image *img, uint64_t f)
{
	if (img->puc.version == 51)
		return pui_cclosure(img, f);
	return (struct pui_fn){.value = f, .tt = img->puc.tt_lcf};
}

uint64_t pui_proto_of(struct puc_image *img, struct pui_fn fn)
{
	return pui_get(img, fn.value + img->puc.closure_p, 8);
}

uint64_t pui_code(struct puc_image *img, struct pui_fn fn, uint32_t pos)
{
	return pui_get(img, pui_proto_of(img, fn) + img->puc.p_code, 8) + 4ULL * pos;
}

static bool is_lua(const struct puc_image *img, const struct pui_stack *st)
{
	const struct puc_layout *l = &img->puc;

	if (st->fn.tt != collectable(img, l->tt_lcl))
		return false;
	if (l->closure_isC == PUC_NONE)
		return true;
	return !img->heap[st->fn.value + l->closure_isC - PUI_HEAP];
}

/* ---- threads --------------------------------------------------------------------------------- */

uint64_t pui_base_ci(struct puc_image *img, uint64_t L)
{
	if (img->puc.flags & PUC_CI_ARRAY)
		return pui_get(img, L + img->puc.L_base_ci, 8);
	return L + img->puc.L_base_ci;
}

static void put_callstatus(struct puc_image *img, uint64_t ci, uint32_t bits)
{
	const struct puc_layout *l = &img->puc;
	uint32_t size = l->cist_mask == 0xff ? 1 : l->cist_mask == 0xffff ? 2 : 4;
	uint32_t ours = l->cist_tail | l->cist_hooked | l->cist_fin | l->cist_lua | l->cist_c;

	pui_put(img, ci + l->ci_callstatus, size, bits | (junk(img) & l->cist_mask & ~ours));
}

void pui_grow(struct puc_image *img, uint64_t L, uint32_t slots, uint32_t calls)
{
	const struct puc_layout *l = &img->puc;
	uint64_t stack = pui_alloc(img, 16ULL * slots), ci;

	pui_put(img, L + l->L_stack, 8, stack);
	pui_put(img, L + l->L_stack_last, 8,
		stack + 16ULL * (slots - EXTRA_STACK - (l->flags & PUC_CI_ARRAY)));
	pui_put(img, stack + PUC_TV_TT, 4, 0); /* nil: no function */
	if (l->flags & PUC_CI_ARRAY)
		pui_put(img, L + l->L_base_ci, 8, pui_alloc(img, (size_t)l->ci_size * calls));
	ci = pui_base_ci(img, L);
	pui_put(img, ci + l->ci_func, 8, stack);
	put_callstatus(img, ci, 0);
	if (l->ci_previous != PUC_NONE)
		pui_put(img, ci + l->ci_previous, 8, 0);
	pui_put(img, L + l->L_ci, 8, ci);
	pui_put(img, L + l->L_top, 8, stack + 16);
}

static void init_thread(struct puc_image *img, uint64_t L)
{
	const struct puc_layout *l = &img->puc;

	put_tt(img, L, PUC_TT_THREAD);
	pui_put(img, L + l->L_status, 1, OK);
	pui_put(img, L + l->L_l_G, 8, img->g);
	pui_put(img, L + l->L_errorJmp, 8, 0);
	pui_put(img, L + l->L_nCcalls, 2, 1);
	pui_grow(img, L, PUI_SLOTS, PUI_CALLS);
	if (img->puc.L_allowhook)
		pui_put(img, L + img->puc.L_allowhook, 1, 1);
}

uint64_t pui_thread(struct puc_image *img)
{
	uint64_t L = pui_alloc(img, img->puc.L_size);

	init_thread(img, L);
	return L;
}

void pui_new_vm(struct puc_image *img)
{
	const struct puc_layout *l = &img->puc;

	if (l->flags & PUC_MAIN_EMBEDDED) {
		img->g = pui_alloc(img, (size_t)l->g_mainthread + PUI_G_SIZE);
		img->main_L = img->g + l->g_mainthread;
	} else {
		img->main_L = pui_alloc(img, (size_t)l->L_size + PUI_G_SIZE);
		img->g = img->main_L + l->L_size;
		pui_put(img, img->g + l->g_mainthread, 8, img->main_L);
	}
	pui_put(img, img->g + l->g_registry + PUC_TV_TT, 1, 5 | COLLECTABLE);
	init_thread(img, img->main_L);
}

void pui_init(struct puc_image *img, const struct puc_layout *puc)
{
	memset(img, 0, sizeof(*img));
	mem_image_init(&img->mem);
	img->puc = *puc;
	img->heap = add_range(img, PUI_HEAP, PUI_HEAP_SIZE);
	img->cstack = add_range(img, PUI_CSTACK, PUI_CSTACK_SIZE);
	img->text = add_range(img, PUI_TEXT, PUI_TEXT_USED);
	img->sp = PUI_CSTACK_END;
	pui_c_code(img, 128); /* environment, main() */
	pui_new_vm(img);
}

void pui_free(struct puc_image *img)
{
	mem_image_clear(&img->mem);
}

static void move_func(struct puc_image *img, uint64_t ci, uint64_t by)
{
	uint64_t func = pui_get(img, ci + img->puc.ci_func, 8);

	pui_put(img, ci + img->puc.ci_func, 8, func + by);
}

void pui_move(struct puc_image *img, uint64_t L, uint32_t corrected, bool offsets)
{
	const struct puc_layout *l = &img->puc;
	uint64_t base = pui_base_ci(img, L), ci = pui_get(img, L + l->L_ci, 8);
	uint64_t old = pui_get(img, L + l->L_stack, 8), new = pui_alloc(img, 16 * PUI_SLOTS);
	bool last;

	memcpy(pui_at(img, new, 16 * PUI_SLOTS), pui_at(img, old, 16 * PUI_SLOTS), 16 * PUI_SLOTS);
	if (offsets || l->version < 54) {
		pui_put(img, L + l->L_stack, 8, new);
		memset(pui_at(img, old, 16 * PUI_SLOTS), 0x5a, 16 * PUI_SLOTS);
	}
	for (;; ci = pui_get(img, ci + l->ci_previous, 8)) {
		last = ci == base;
		if (corrected) {
			move_func(img, ci, new - old);
			corrected--;
		} else if (offsets) {
			move_func(img, ci, 0 - old);
		}
		if (last)
			break;
	}
}

struct pui_stack pui_stack(struct puc_image *img, uint64_t L)
{
	return (struct pui_stack){
		.L = L, .ci = pui_base_ci(img, L), .func = pui_get(img, L + img->puc.L_stack, 8)};
}

static uint64_t next_ci(struct puc_image *img, struct pui_stack *st)
{
	const struct puc_layout *l = &img->puc;
	uint64_t ci;

	if (l->flags & PUC_CI_ARRAY)
		return st->ci + l->ci_size;
	ci = pui_alloc(img, l->ci_size); /* its `next`, as everything that is not set, is junk */
	pui_put(img, ci + l->ci_previous, 8, st->ci);
	return ci;
}

static void put_fn(struct puc_image *img, uint64_t slot, struct pui_fn fn)
{
	pui_put(img, slot + PUC_TV_VALUE, 8, fn.value);
	/* from 5.4 on the tag is a byte, and what follows it is anything */
	pui_put(img, slot + PUC_TV_TT, img->puc.version < 54 ? 4 : 1, fn.tt);
}

static void store_pc(struct puc_image *img, struct pui_stack *st, uint64_t pc)
{
	const struct puc_layout *l = &img->puc;

	if (l->L_savedpc != PUC_NONE)
		pui_put(img, st->L + l->L_savedpc, 8, pc);
	else
		pui_put(img, st->ci + l->ci_savedpc, 8, pc);
}

void pui_push(struct puc_image *img, struct pui_stack *st, struct pui_fn fn)
{
	const struct puc_layout *l = &img->puc;
	uint64_t top;

	/* as luaD_precall of 5.1 does for whoever calls */
	if (l->L_savedpc != PUC_NONE)
		pui_put(img, st->ci + l->ci_savedpc, 8, pui_get(img, st->L + l->L_savedpc, 8));
	st->ci = next_ci(img, st);
	st->func += 16 * SLOTS_OF_A_CALL;
	st->fn = fn;
	top = st->func + 16 * SLOTS_OF_A_CALL;
	put_fn(img, st->func, fn);
	pui_put(img, st->ci + l->ci_func, 8, st->func);
	if (l->flags & PUC_CI_ARRAY)
		pui_put(img, st->ci + CI51_BASE, 8, st->func + 16);
	pui_put(img, st->ci + (l->flags & PUC_CI_ARRAY ? CI51_TOP : CI_TOP), 8, top);
	pui_put(img, st->L + l->L_ci, 8, st->ci);
	pui_put(img, st->L + l->L_top, 8, top);
	pui_callstatus(img, st, 0);
	if (is_lua(img, st))
		store_pc(img, st, pui_code(img, fn, 0));
}

void pui_call(struct puc_image *img, struct pui_stack *st, uint32_t pos, struct pui_fn fn)
{
	pui_savepc(img, st, pos);
	pui_push(img, st, fn);
}

void pui_pop(struct puc_image *img, struct pui_stack *st)
{
	const struct puc_layout *l = &img->puc;

	if (l->flags & PUC_CI_ARRAY)
		st->ci -= l->ci_size;
	else
		st->ci = pui_get(img, st->ci + l->ci_previous, 8);
	st->func = pui_get(img, st->ci + l->ci_func, 8);
	st->fn.value = pui_get(img, st->func + PUC_TV_VALUE, 8);
	st->fn.tt = (uint8_t)pui_get(img, st->func + PUC_TV_TT, 1);
	pui_put(img, st->L + l->L_ci, 8, st->ci);
	if (l->L_savedpc != PUC_NONE)
		pui_put(img, st->L + l->L_savedpc, 8, pui_get(img, st->ci + l->ci_savedpc, 8));
}

void pui_vararg(struct puc_image *img, struct pui_stack *st, uint32_t nargs)
{
	if (img->puc.version < 54)
		return; /* only its base moves */
	st->func += 16ULL * (nargs + 1);
	put_fn(img, st->func, st->fn);
	pui_put(img, st->ci + img->puc.ci_func, 8, st->func);
}

void pui_savepc(struct puc_image *img, struct pui_stack *st, uint32_t pos)
{
	store_pc(img, st, pui_code(img, st->fn, pos + 1));
}

void pui_callstatus(struct puc_image *img, struct pui_stack *st, uint32_t bits)
{
	put_callstatus(img, st->ci, bits | (is_lua(img, st) ? img->puc.cist_lua : img->puc.cist_c));
}

void pui_status(struct puc_image *img, uint64_t L, uint8_t status)
{
	pui_put(img, L + img->puc.L_status, 1, status);
}

/* ---- the C stack ----------------------------------------------------------------------------- */

void pui_word(struct puc_image *img, uint64_t word)
{
	img->sp -= 8;
	pui_put(img, img->sp, 8, word);
}

void pui_c_code(struct puc_image *img, uint32_t words)
{
	uint32_t i;

	/* locals, and a few return addresses */
	for (i = 0; i < words; i++)
		pui_word(img, i % 8 == 7 ? PUI_LIBC + 0x4000 + i : i * 3);
}

/* The bytes before a return address are a call: by pointer, where no other was put there. */
static void put_call(struct puc_image *img, uint64_t ret)
{
	if (ret - PUI_TEXT < PUI_TEXT_USED && pui_get(img, ret - 5, 1) != CALL_REL32)
		pui_put(img, ret - 2, 2, CALL_RAX);
}

void pui_enter(struct puc_image *img, uint64_t ret, uint32_t words)
{
	static const uint8_t kept[] = {PUI_RBP, PUI_R15, PUI_R14, PUI_R13, PUI_R12, PUI_RBX};
	size_t i;

	put_call(img, ret);
	pui_word(img, ret);
	for (i = 0; i < sizeof(kept); i++)
		pui_word(img, img->gprs.r[kept[i]]);
	for (i = 0; i < words; i++)
		pui_word(img, 0x100 + i);
}

/* As glibc hides what is an address on the stack or in the text from who would change it. */
static uint64_t mangled(uint64_t value)
{
	value ^= 0x9d3c1e5f7a2b4c80ULL;
	return value << 17 | value >> 47;
}

/* __jmp_buf of x86-64: rbx, rbp, r12 .. r15, rsp, pc. What follows it setjmp leaves alone. */
static void put_jmp_buf(struct puc_image *img, uint64_t at)
{
	const __u64 *r = img->gprs.r;
	const uint64_t words[] = {
		r[PUI_RBX], mangled(r[PUI_RBP]), r[PUI_R12],  r[PUI_R13],
		r[PUI_R14], r[PUI_R15],		 mangled(at), mangled(PUI_TEXT + 0x4010)};
	uint32_t i;

	for (i = 0; i < JMP_BUF / 8; i++)
		pui_put(img, at + 8 * i, 8, i < 8 ? words[i] : junk(img));
}

uint64_t pui_protect(struct puc_image *img, uint64_t L)
{
	uint64_t lj;

	pui_enter(img, PUI_TEXT + 0x4000, 2);
	img->sp -= PUC_LONGJMP_PREVIOUS + 8 + JMP_BUF + 8;
	lj = img->sp;
	pui_put(img, lj + PUC_LONGJMP_PREVIOUS, 8, pui_get(img, L + img->puc.L_errorJmp, 8));
	put_jmp_buf(img, lj + PUC_LONGJMP_PREVIOUS + 8);
	pui_put(img, L + img->puc.L_errorJmp, 8, lj);
	pui_put(img, L + img->puc.L_nCcalls, 2, pui_get(img, L + img->puc.L_nCcalls, 2) + 1);
	img->gprs.r[PUI_RBX] = L;
	img->gprs.r[PUI_RBP] = lj;
	return lj;
}

void pui_call_site(struct puc_image *img, uint64_t ret, uint64_t to)
{
	pui_put(img, ret - 5, 1, CALL_REL32);
	pui_put(img, ret - 4, 4, to - ret);
}

void pui_execute(struct puc_image *img, const struct pui_stack *st)
{
	pui_enter(img, PUI_TEXT + 0x5000, 11);
	img->gprs.r[PUI_RBX] = st->ci;
	img->gprs.r[PUI_RBP] = st->L;
	img->gprs.r[PUI_R12] = st->func + 16;
	img->gprs.r[PUI_R14] = 0x77;
	img->gprs.r[PUI_R15] = st->fn.value;
	if (is_lua(img, st))
		pui_pc(img, st->fn, 0);
}

void pui_pc(struct puc_image *img, struct pui_fn fn, uint32_t pos)
{
	img->gprs.r[PUI_PC_REG] = pui_code(img, fn, pos + 1);
}

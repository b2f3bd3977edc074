/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vm_x64.dasc has two idioms around a call to C:
 *
 *     mov RB, BASE                         mov L:RB->base, BASE
 *     call extern lj_tab_getinth           mov SAVE_PC, PC
 *     mov BASE, RB                         call extern lj_meta_tget
 *                                          mov BASE, L:RB->base
 *
 * RB is rbp, BASE rdx (ebp and edx in GC32); L->base is at +0x20 of lua_State (+0x10). The first instruction after a call that
 * writes rdx classifies it. Further calls and a jump to common code may come before that.
 */
#include "arch/lj_sites.h"

#include <errno.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "insn.h"

struct vm_text {
	const uint8_t *p;
	size_t size;
	bool gc32;
};

static bool is_word_mov(const struct vm_text *t, const struct insn *in)
{
	return in->op == ZYDIS_MNEMONIC_MOV && in->size == (t->gc32 ? 4 : 8);
}

static bool is_mov(const struct vm_text *t, const struct insn *in, uint8_t to, uint8_t from)
{
	return is_word_mov(t, in) && in->reg[0] == to && in->reg[1] == from;
}

/* mov rdx, [reg + 0x20]; in GC32 mov edx, [reg + 0x10] */
static bool is_load_base(const struct vm_text *t, const struct insn *in)
{
	return is_word_mov(t, in) && in->reg[0] == X86_RDX && x86_is_field(in) &&
	       in->disp == (t->gc32 ? LJ32_L_BASE : LJ_L_BASE);
}

static enum lj_site_class classify(const struct vm_text *t, struct lj_site *site)
{
	bool rbp_kept = true;
	size_t at = site->ret;

	while (site->nbehind < LJ_SITE_AROUND && at < t->size) {
		struct insn in;

		if (!insn_decode(t->p + at, t->size - at, &in))
			break;
		site->behind[site->nbehind++] = (uint32_t)at;
		at += in.len;
		if (is_mov(t, &in, X86_RDX, X86_RBP))
			return rbp_kept ? LJ_SITE_RBP : LJ_SITE_UNKNOWN;
		if (is_load_base(t, &in))
			return LJ_SITE_LBASE;
		if (insn_writes(&in, X86_RDX) || insn_ends(&in))
			break;
		if (insn_writes(&in, X86_RBP))
			rbp_kept = false;
		if (insn_is_jump(&in))
			at += (size_t)in.imm; /* wraps to beyond size if it leaves the VM */
	}
	return LJ_SITE_UNKNOWN;
}

/* Instructions since BASE was copied to rbp. */
struct kept {
	bool is; /* rbp still holds it */
	uint8_t n;
	uint32_t at[LJ_SITE_AROUND];
};

static void keep(const struct vm_text *t, struct kept *k, const struct insn *in, size_t at)
{
	if (is_mov(t, in, X86_RBP, X86_RDX)) {
		*k = (struct kept){.is = true};
		return;
	}
	if (insn_writes(in, X86_RBP) || insn_ends(in) || insn_is_jump(in) || k->n == LJ_SITE_AROUND)
		k->is = false;
	if (k->is)
		k->at[k->n++] = (uint32_t)at;
}

static void put_site(const struct vm_text *t, const struct insn *in, size_t ret, uint64_t vaddr,
		     const struct kept *k, struct lj_site *site)
{
	*site = (struct lj_site){
		.ret = (uint32_t)ret,
		.callee = in->relative ? vaddr + ret + (uint64_t)in->imm : 0,
	};
	if (k->is) {
		memcpy(site->before, k->at, sizeof(site->before));
		site->nbefore = k->n;
	}
	site->class = (uint8_t)classify(t, site);
}

int lj_sites_scan(const uint8_t *text, size_t size, bool gc32, uint64_t vaddr,
		  struct lj_site *sites, size_t max, size_t *n)
{
	const struct vm_text t = {text, size, gc32};
	struct kept kept = {};
	size_t at = 0, found = 0;

	while (at < size) {
		struct insn in;

		if (!insn_decode(text + at, size - at, &in)) {
			at++; /* data, or an unknown instruction: resynchronises */
			kept.is = false;
			continue;
		}
		keep(&t, &kept, &in, at);
		at += in.len;
		if (!insn_is_call(&in))
			continue;
		if (found == max)
			return -E2BIG;
		put_site(&t, &in, at, vaddr, &kept, &sites[found++]);
	}
	*n = found;
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
#include "vm_states.h"

#include <errno.h>

#include <unwind/main_thread.h>

#include "base/mem_remote.h"
#include "proc/memory.h"

/* LuaJIT's global_State (lj_obj.h), beside struct lj_layout. Until 2020-06-23, and in Tarantool's: */
enum {
	LJ_G_MAINTHREF_BEFORE_REGISTRY = 8, /* mainthref is directly before registrytv */
	LJ_G_DISPATCHMODE_BEFORE_MAINTHREF = 6,
};
/* ... since then: */
enum {
	LJ_G_MAINTHREF_BEHIND_VMSTATE = 8, /* directly behind it, aligned */
	LJ_G_DISPATCHMODE_BEFORE_VMSTATE = 38,
};
/* ... in GC32, where gc.total has 32 bits: */
enum { LJ32_G_MAINTHREF_BEHIND_VMSTATE = 4, LJ32_G_DISPATCHMODE_BEFORE_MAINTHREF = 2 };
#define LJ_DISPMODE_JIT 0x10 /* lj_dispatch.c */

/* PUC Lua's global_State (lstate.h), the number of bytes that lua_gc() counts. */
enum {
	PUC_G_TOTALBYTES_51 = 120,
	PUC_G_TOTALBYTES = 16, /* with GCdebt, which 5.5 subtracts */
	PUC_G_GCDEBT = 24,
};

/*
 * A freed global_State may keep its contents after lua_close(). Its memory count is then below this.
 * The strings and tables of a live VM take more.
 */
#define LJ_CLOSED 7168
#define PUC_CLOSED 2048
#define MOST_MEMORY (1ULL << 47)
#define MOST_STACK (1ULL << 24) /* LUAI_MAXSTACK is a million slots */

/* Budget charged per candidate pointer, for its reads. */
#define CANDIDATE 4096

struct finder {
	struct mem_remote remote;
	const struct vm_file *files;
	size_t n;
	struct budget *work;
	struct vm_states *out;
	uint64_t words[MEMORY_RUN / 8];
};

static bool read_word(struct finder *f, uint64_t addr, uint64_t *word)
{
	return !mem_read(&f->remote.mem, word, sizeof(*word), addr);
}

static bool read_byte(struct finder *f, uint64_t addr, uint8_t *byte)
{
	return !mem_read(&f->remote.mem, byte, sizeof(*byte), addr);
}

static bool read_ref(struct finder *f, const struct lj_layout *lj, uint64_t addr, uint64_t *ref)
{
	uint32_t half;

	if (!lj_is_gc32(lj))
		return read_word(f, addr, ref);
	if (mem_read(&f->remote.mem, &half, sizeof(half), addr))
		return false;
	*ref = half;
	return true;
}

static bool is_old(const struct lj_layout *lj)
{
	return lj->str_len == LJ_OFF(lj, STR_LEN_2017);
}

static uint64_t lj_mainthref(const struct lj_layout *lj)
{
	int at = lj->v20      ? lj->registrytv - 4
		 : is_old(lj) ? lj->registrytv - LJ_G_MAINTHREF_BEFORE_REGISTRY
			      : lj->vmstate + (lj_is_gc32(lj) ? LJ32_G_MAINTHREF_BEHIND_VMSTATE
							      : LJ_G_MAINTHREF_BEHIND_VMSTATE);

	return (uint64_t)at;
}

static uint64_t lj_dispatchmode(const struct lj_layout *lj)
{
	/* Tarantool's, whose vmstate is behind registrytv, has hookcount between, as GC64 has padding */
	bool hookcount = !lj->v20 && lj->vmstate > lj->registrytv;

	if (!is_old(lj))
		return (uint64_t)lj->vmstate - LJ_G_DISPATCHMODE_BEFORE_VMSTATE;
	return lj_mainthref(lj) - (lj_is_gc32(lj) && !hookcount
					   ? LJ32_G_DISPATCHMODE_BEFORE_MAINTHREF
					   : LJ_G_DISPATCHMODE_BEFORE_MAINTHREF);
}

/* The dispatch table, in one block with both, leads into the file's VM. */
static bool is_lj(struct finder *f, const struct vm_file *file, uint64_t L, struct vm_state *s)
{
	const struct lj_layout *lj = &file->build->lj.lj;
	uint64_t its, handler;
	uint8_t gct, mode;

	if (!read_byte(f, L + LJ_OFF(lj, L_GCT), &gct) || gct != LJ_GCT_THREAD ||
	    !read_ref(f, lj, s->g + lj_mainthref(lj), &its) || its != L ||
	    !read_word(f, s->g + lj->g2disp, &handler) || handler < file->at->vm_start ||
	    handler >= file->at->vm_end || !read_byte(f, s->g + lj_dispatchmode(lj), &mode) ||
	    !read_ref(f, lj, s->g + lj->gc_total, &s->memory))
		return false;
	s->jit = mode & LJ_DISPMODE_JIT;
	return s->memory > LJ_CLOSED;
}

static bool read_puc_memory(struct finder *f, const struct puc_layout *puc, struct vm_state *s)
{
	uint64_t debt;

	if (puc->version == 51)
		return read_word(f, s->g + PUC_G_TOTALBYTES_51, &s->memory);
	if (!read_word(f, s->g + PUC_G_TOTALBYTES, &s->memory) ||
	    !read_word(f, s->g + PUC_G_GCDEBT, &debt))
		return false;
	s->memory += puc->version >= 55 ? -debt : debt;
	return true;
}

static bool is_puc(struct finder *f, const struct vm_file *file, uint64_t L, struct vm_state *s)
{
	const struct puc_layout *puc = &file->build->puc.puc;
	uint64_t its = L, stack, last;
	uint8_t tt;

	if (!read_byte(f, L + PUC_GC_TT, &tt) || (tt & PUC_TT_MASK) != PUC_TT_THREAD ||
	    (!(puc->flags & PUC_MAIN_EMBEDDED) && !read_word(f, s->g + puc->g_mainthread, &its)) ||
	    its != L || !read_word(f, L + puc->L_stack, &stack) ||
	    !read_word(f, L + puc->L_stack_last, &last) || stack & 7 || last & 7 || !stack ||
	    last <= stack || last - stack > MOST_STACK || !read_puc_memory(f, puc, s))
		return false;
	return s->memory > PUC_CLOSED;
}

static void add(struct vm_states *out, const struct vm_state *s)
{
	for (size_t i = 0; i < out->n && i < VM_STATES; i++) /* two files of one release */
		if (out->at[i].g == s->g)
			return;
	if (out->n < VM_STATES)
		out->at[out->n] = *s;
	out->n++;
	out->memory += s->memory;
}

static void search(struct finder *f, uint32_t module, uint64_t start, size_t nwords)
{
	const struct vm_file *file = &f->files[module];
	struct lb_main_thread link = lb_main_thread_of(file->build);

	for (size_t i = 0; i < nwords; i++) {
		uint64_t L = start + 8 * i - link.global_ref, g = f->words[i] & link.mask;
		struct vm_state s = {.g = g, .module = module};

		if (!lb_may_be_main_thread(&link, L, g))
			continue;
		if (!budget_spend(f->work, CANDIDATE)) { /* used up by candidates or memory */
			f->out->complete = false;
			return;
		}
		if ((lb_is_luajit(file->build->family) ? is_lj : is_puc)(f, file, L, &s) &&
		    s.memory < MOST_MEMORY)
			add(f->out, &s);
	}
}

static int search_run(void *arg, uint64_t start, uint64_t end)
{
	struct finder *f = arg;
	int r = mem_read(&f->remote.mem, f->words, (uint32_t)(end - start), start);

	if (r == -EFAULT) { /* unmapped since */
		f->out->complete = false;
		return 0;
	}
	for (uint32_t i = 0; i < f->n && !r; i++)
		search(f, i, start, (end - start) / 8);
	return r;
}

int vm_states_find(pid_t pid, const struct vm_file *files, size_t n, struct budget *work,
		   struct vm_states *out)
{
	struct finder f = {.files = files, .n = n, .work = work, .out = out};
	int r;

	*out = (struct vm_states){};
	mem_remote_init(&f.remote, pid);
	r = memory_each(pid, work, search_run, &f, &out->complete);
	if (r)
		out->complete = false;
	return r;
}

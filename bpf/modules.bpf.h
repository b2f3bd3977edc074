/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A process with more VMs than its entry holds. The programs that walk know LB_MODULES at most. So
 * those that may run are chosen for each sample: the innermost ones that the C stack leads to, then
 * those that ran on this thread before.
 */
#ifndef LUABPF_MODULES_BPF_H
#define LUABPF_MODULES_BPF_H

#include <unwind/unwind.h>
#include "maps.bpf.h"
#include "regs.bpf.h"
#include "thread.bpf.h"

#define STACK_SEARCHED (32 << 10) /* bytes of it */
#define STACK_GROUP 8		  /* words that are looked at in one step */
#define BISECTIONS 8		  /* 2^8 = LB_MODULES_MOST */

/* Returns the index in proc->module[] of the one with this id; LB_MODULES: it was not chosen. */
LB_SUBPROG int module_chosen(const struct lb_proc *proc, __u32 id)
{
	__u32 i;

	if (!proc)
		return LB_MODULES;
	LB_UNROLLED
	for (i = 0; i < LB_MODULES; i++)
		if (i < proc->nmodules && proc->module[i].id == id)
			return (int)i;
	return LB_MODULES;
}

static __always_inline __u32 module_of_id(const struct lb_proc *proc, __u32 id)
{
	return proc->more ? (__u32)module_chosen(proc, id) : id;
}

static __always_inline __u32 id_of_module(const struct lb_proc *proc, __u32 i)
{
	return proc->module[i & (LB_MODULES - 1)].id;
}

static __always_inline struct lb_module *module_at(__u32 first, __u32 i)
{
	__u32 key = first + i;

	return bpf_map_lookup_elem(&modules, &key);
}

static __always_inline struct lb_module *module_by_order(__u32 first, __u32 i)
{
	const struct lb_module *at = module_at(first, i);

	return at ? module_at(first, at->order) : 0;
}

/* Adds a module, unless it is there, or there is no room. Returns how many there are. */
LB_SUBPROG int module_choose(struct lb_proc *chosen, const struct lb_module *m)
{
	__u32 n;

	if (!chosen || !m)
		return LB_MODULES;
	n = chosen->nmodules;
	if (n >= LB_MODULES || module_chosen(chosen, m->id) < LB_MODULES)
		return (int)n;
	chosen->module[n] = *m;
	chosen->families |= 1u << (m->family & (LB_FAMILIES_MOST - 1));
	chosen->nmodules = n + 1;
	return (int)n + 1;
}

static long choice_bisect(__u32 i, struct lb_choice **choice)
{
	struct lb_choice *c = *choice;
	__u32 middle = (c->low + c->high) / 2;
	const struct lb_module *m = module_by_order(c->first, middle);

	if (!m)
		return 1;
	if (c->word >= m->text_lo)
		c->low = middle;
	else
		c->high = middle;
	return c->high - c->low <= 1;
}

/* Chooses the module whose text a word points into. Returns how many were chosen. */
LB_SUBPROG int choice_word(struct lb_choice *c, struct lb_proc *chosen, __u64 word)
{
	const struct lb_module *m;

	if (!c || !chosen)
		return 0;
	c->word = word;
	c->low = 0;
	c->high = c->n;
	bpf_loop(BISECTIONS, choice_bisect, &c, 0);
	m = module_by_order(c->first, c->low);
	if (!m || word - m->text_lo >= m->text_hi - m->text_lo)
		return 0;
	return module_choose(chosen, m);
}

struct choice_ctx {
	struct lb_choice *choice;
	struct lb_proc *chosen;
};

static long choice_group(__u32 i, struct choice_ctx *ctx)
{
	__u32 at = (i & (STACK_WORDS / STACK_GROUP - 1)) * STACK_GROUP, bits = 0, j;
	struct lb_choice *c = ctx->choice;
	__u64 addr = c->from + (__u64)i * STACK_GROUP * 8;

	if (!at && bpf_probe_read_user(c->stack, sizeof(c->stack), (const void *)addr))
		return 1;
	if (addr + STACK_GROUP * 8 <= c->sp)
		return 0;
	LB_UNROLLED
	for (j = 0; j < STACK_GROUP; j++)
		bits |= (__u32)lb_within(c->stack[at + j], c->lo, c->size) << j;
	if (!bits)
		return 0;
	LB_ROLLED
	for (j = 0; j < STACK_GROUP; j++)
		if (bits >> j & 1 && choice_word(c, ctx->chosen, c->stack[at + j]) >= LB_MODULES)
			return 1;
	return 0;
}

/*
 * Sets the process that is sampled to one with the modules that may run. Returns their families; 0:
 * none may. Not inlined: few processes have so many.
 */
static __noinline __u32 modules_choose(struct lb_cpu *cpu, const struct lb_proc *proc,
				       const struct lb_thread *thread,
				       const struct bpf_perf_event_data *event)
{
	struct choice_ctx ctx = {&cpu->choice, &cpu->target[CPU_TARGETS].proc};
	const struct lb_module *lowest, *highest;
	struct lb_choice *c = ctx.choice;
	__u64 ip;
	__u32 i;

	cpu->current = CPU_TARGETS;
	__builtin_memcpy(ctx.chosen, proc, __builtin_offsetof(struct lb_proc, module));
	ctx.chosen->nmodules = 0;
	ctx.chosen->families = 0;
	c->first = proc->more - 1;
	c->n = proc->nmodules;
	lowest = module_by_order(c->first, 0);
	highest = module_by_order(c->first, c->n - 1);
	if (!lowest || !highest || regs_read_stack(&ip, &c->sp, event, bpf_get_current_task_btf()))
		return 0;
	c->lo = lowest->text_lo;
	c->size = highest->text_hi - c->lo;
	c->from = c->sp & ~(STACK_WORDS * 8ULL - 1);
	choice_word(c, ctx.chosen, ip);
	bpf_loop(STACK_SEARCHED / 8 / STACK_GROUP, choice_group, &ctx, 0);
	LB_UNROLLED
	for (i = 0; i < LB_THREAD_VMS; i++)
		if (thread->vms.g[i] && thread->vms.module[i] < c->n)
			module_choose(ctx.chosen, module_at(c->first, thread->vms.module[i]));
	if (thread->puc_L && thread->puc_module < c->n)
		module_choose(ctx.chosen, module_at(c->first, thread->puc_module));
	return ctx.chosen->families;
}

#endif

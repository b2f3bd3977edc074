/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The step contract of the unwinders.
 *
 *     lj_walk_begin(), puc_walk_begin()  sets a walk up from registers and layout
 *     lj_step(), puc_step()              does a bounded part of it; returns LB_MORE or LB_STOP
 *
 * The caller owns the loop (bpf_loop in the kernel, a for in user space) and bounds it by
 * LB_MAX_STEPS; a walk that did not stop by then ends as LB_STATUS_LOOP. The walk, one object in
 * memory, has all state: the verifier checks a step once, and a debugger can stop between two.
 *
 * Walkers call no BPF helper but through lb_loop() and mem_read(), read target memory only through
 * the latter, and access no maps.
 */
#ifndef LUABPF_UNWIND_UNWIND_H
#define LUABPF_UNWIND_UNWIND_H

#include <unwind/abi.h>
#include <unwind/cache.h>
#include <unwind/mem.h>

#define LB_MAX_STEPS 1024

enum lb_more {
	LB_MORE = 0,
	LB_STOP = 1,
};

/*
 * The sampled thread's registers by their role, filled by bpf/regs.bpf.h. x86-64 names in brackets.
 */
struct lb_regs {
	__u64 ip;
	__u64 sp;
	__u64 base;    /* BASE in the VM (rdx) */
	__u64 pc;      /* PC in the VM (rbx) */
	__u64 rb;      /* RB, to which the VM saves BASE across some calls (rbp) */
	__u64 gl;      /* DISPATCH in the VM and in compiled code (r14) */
	__u64 rd;      /* RD: an exit's number in vm_exit_handler (rax) */
	__u64 ra;      /* RA: the number of its trace there (rcx) */
	__u64 kept[3]; /* the other callee-saved registers (r12, r13, r15) */
	/* skid. 1: an interrupt came in user mode, ip is behind the instruction that the processor
	 * waited for; 0: the kernel runs for the instruction at ip or, in a system call, before it
	 */
	__u64 behind;
};

#define LB_KEPT_KBASE 2 /* in kept[]: KBASE in LuaJIT's VM (r15) */

/*
 * All general registers, by their number in an instruction's encoding (x86-64: rax, rcx, rdx, rbx,
 * rsp, rbp, rsi, rdi, r8 .. r15): for builds whose registers' roles are found at run time.
 */
#define LB_GPRS 16
struct lb_gprs {
	__u64 r[LB_GPRS];
};

/*
 * The state common to all walkers: the first member of each one's struct, without a name
 * (-fms-extensions, as the kernel builds itself since 6.19), so that its fields read as its own.
 */
struct lb_walk {
	__u64 vm_start, vm_end; /* text of the interpreter */
	__u64 text_lo, text_hi; /* text of the whole module */
	__u64 stack_hi;		/* end of the C stack's mapping */

	__u64 g; /* global_State */
	__u64 L;
	__s32 vmstate;
	__u32 end;	  /* enum lb_status, valid once stopped */
	__u8 state;	  /* jit.p's letter */
	__u8 detail;	  /* of the state: LB_STATE_DETAIL(), valid once ended */
	__u8 flags;	  /* LB_FRAME_* for the next frame */
	__u8 fault;	  /* a required read failed: the result may be wrong */
	__u32 proto_sent; /* prototypes that were sent; the caller's, as the next */
	__u32 samples;	  /* of this CPU, so far */

	__u64 epoch; /* of the process, differs from that of others; 0: none */
	__u8 prove;  /* this sample takes nothing from a table: lb_is_proved() */
	__u8 single; /* the process has one build of a VM: an outer VM is of the same */

	/* unwind/outer.h */
	__u8 outward;		/* a VM that called this one is searched for */
	__u32 whole;		/* frames of the VMs whose walk is complete; 0: of none */
	__u64 below_g;		/* while g is 0: the VM whose caller is searched for */
	__u64 inner_g, inner_L; /* the innermost VM and its outermost thread, once left; or 0 */

	/* the last chunk's name in a fingerprint, and its own hash */
	__u64 name, name_fp;
	__u32 name_sample; /* the sample in which that was */

	struct lb_regs regs;	  /* filled by the caller */
	struct lb_rec_sample rec; /* the record; frames go to rec.stack */
	struct lb_rec_zone zone;  /* zone.h: the name of rec.zone */
	__u64 zone_word;	  /* that was read */
	__u32 zone_depth;	  /* zones: in the thread's last sample, then in this one */
	__u8 scratch[LB_READ_MOST];
};

/*
 * Reads required bytes. When they cannot be read, the sample is lost. cache is the walker's own,
 * its last member.
 */
static __always_inline int lb_need(const struct lb_mem *mem, struct lb_walk *w,
				   struct lb_cache *cache, void *dst, __u32 size, __u64 addr)
{
	int r = lb_read(mem, cache, dst, size, addr);

	w->fault |= (__u32)r >> 31;
	return r;
}

/*
 * Returns bytes in place, valid until the next read; 0: they cannot be read. size is at most
 * LB_READ_MOST.
 */
static __always_inline const __u8 *lb_maybe(const struct lb_mem *mem, struct lb_walk *w,
					    struct lb_cache *cache, __u64 addr, __u32 size)
{
	if (lb_ready(mem, cache, addr, size))
		return lb_bytes(cache, addr);
	return lb_read_apart(mem, w->scratch, size, addr) ? 0 : w->scratch;
}

/*
 * Adjacent frames often share a chunk: its name is read once for them. Returns 1 when w->name_fp
 * has to be set for this name, 0 when it is that of the last.
 */
static __always_inline int lb_is_new_name(struct lb_walk *w, const struct lb_cache *cache,
					  __u64 name)
{
	if (w->name == name && w->name_sample == cache->sample)
		return 0;
	w->name = name;
	w->name_sample = cache->sample;
	w->name_fp = 0;
	return 1;
}

/*
 * Returns an object's index in a table of 2^bits entries. Adjacent objects, as those that were
 * allocated in sequence, have adjacent entries: in few pages, within the reach of the TLB.
 */
static __always_inline __u32 lb_table_index(__u64 addr, __u32 bits)
{
	return (__u32)(addr >> 4 ^ addr >> (5 + bits)) & ((1u << bits) - 1);
}

/*
 * True if a table's entry of an earlier sample counts in this one. User space begins an epoch with
 * each drain of the ring; a prototype's fingerprint is computed once in an epoch. After the drain
 * user space reads all prototypes of the samples again, and drops the samples of those that
 * changed. Samples of a process without lb_proc.shares, and one sample in LB_PROVE_EACH, drawn at
 * random, take nothing from the table.
 */
static __always_inline int lb_is_proved(const struct lb_walk *w, __u64 epoch)
{
	return epoch && epoch == w->epoch && !w->prove;
}

/*
 * Returns 1 when addr lies in [lo, lo + size), else 0. Without a branch, of which the verifier
 * follows both paths in each turn of a loop. size is below 2^63.
 */
static __always_inline __u64 lb_within(__u64 addr, __u64 lo, __u64 size)
{
	__u64 at = addr - lo;

	return ~(at | (size - 1 - at)) >> 63;
}

/* As lb_need(), but in place, as lb_maybe(). */
static __always_inline int lb_need_at(const struct lb_mem *mem, struct lb_walk *w,
				      struct lb_cache *cache, const __u8 **bytes, __u32 size,
				      __u64 addr)
{
	*bytes = lb_maybe(mem, w, cache, addr, size);
	if (*bytes)
		return 0;
	w->fault = 1;
	return -1;
}

#endif

/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The memory accessor: the only access to a target's memory.
 *
 * All code that follows a target's pointers (unwind/, user/detect, user/lua, user/jit, user/sym)
 * reads through mem_read(). In the kernel that is bpf_probe_read_user() on the current task; in
 * user space `struct lb_mem` is a live process (base/mem_remote), bytes that BPF sent or a test
 * built (base/mem_image), or a fuzzer.
 *
 * mem_read() returns 0 when all `size` bytes at `addr` were read, or a negative errno. On failure
 * the contents of `dst` are undefined.
 */
#ifndef LUABPF_UNWIND_MEM_H
#define LUABPF_UNWIND_MEM_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
/*
 * A global function of the BPF program, which the verifier checks once for all callers. The
 * verifier assumes that its pointers may be NULL, and requires that it returns a number. Weak, so
 * that no optimizer drops an argument.
 */
#ifdef __bpf__
#define LB_SUBPROG __attribute__((noinline, weak))
#else
#define LB_SUBPROG static __attribute__((noinline, unused))
#endif

/* A cache line. Tables begin with one, and their entries do not straddle two. */
#define LB_LINE 64
#define LB_LINE_ALIGNED __attribute__((aligned(LB_LINE)))

/*
 * A loop in BPF: LB_ROLLED keeps it, the verifier follows its body once for each turn; LB_UNROLLED
 * makes a copy for each turn, in which the turn's number is a constant.
 */
#ifdef __bpf__
#define LB_ROLLED _Pragma("clang loop unroll(disable)")
#define LB_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define LB_ROLLED
#define LB_UNROLLED
#endif

/*
 * Calls step(turn, ctx) for turn = 0 .. n - 1, until it returns nonzero. The verifier follows one
 * turn of it, but each turn of a C loop, which is most of a program's load time. A turn costs a
 * call: short steps do several items in one. State that changes between turns belongs in the walk,
 * where the verifier assumes any value.
 *
 * The kernel makes code of a bpf_loop() whose flags it knows to be 0, for which it copies the whole
 * program: each of these takes a millisecond of the load. lb_rare_loop() is for loops that few
 * samples come to: it leaves the kernel in doubt, and a turn costs an indirect call.
 */
#ifdef __bpf__
static volatile __u64 lb_no_flags;
#define lb_loop(n, step, ctx) bpf_loop(n, step, ctx, 0)
#define lb_rare_loop(n, step, ctx) bpf_loop(n, step, ctx, lb_no_flags)
#else
#define lb_rare_loop lb_loop
#define lb_loop(n, step, ctx)                                                                      \
	do {                                                                                       \
		for (__u32 turn_ = 0; turn_ < (n) && !(step)(turn_, ctx); turn_++)                 \
			;                                                                          \
	} while (0)
#endif

/*
 * Words inside bytes that were read: these may alias anything. A damaged target's pointers have any
 * alignment, and so have the bytes read through them. BPF loads unaligned words, but clang would
 * emit byte loads for a type that is aligned to 1.
 */
#ifdef __bpf__
#define LB_WORD __attribute__((may_alias))
#else
#define LB_WORD __attribute__((may_alias, aligned(1)))
#endif
typedef __u64 LB_WORD lb_u64;
typedef __u32 LB_WORD lb_u32;
typedef __u16 LB_WORD lb_u16;

/*
 * Forces the load here in BPF: clang may otherwise merge it with another path's load at the use,
 * and the verifier accepts only one type of pointer at an instruction.
 */
static __always_inline __u64 lb_loaded(__u64 word)
{
#ifdef __bpf__
	asm volatile("" : "+r"(word));
#endif
	return word;
}

static __always_inline __u64 lb_word(const void *bytes, __u32 offset)
{
	return lb_loaded(*(const lb_u64 *)((const char *)bytes + offset));
}

static __always_inline __u32 lb_half(const void *bytes, __u32 offset)
{
	return (__u32)lb_loaded(*(const lb_u32 *)((const char *)bytes + offset));
}

static __always_inline __u16 lb_short(const void *bytes, __u32 offset)
{
	return (__u16)lb_loaded(*(const lb_u16 *)((const char *)bytes + offset));
}

static __always_inline __u8 lb_byte(const void *bytes, __u32 offset)
{
	return (__u8)lb_loaded(*((const __u8 *)bytes + offset));
}

#ifdef __bpf__

struct lb_mem {
	char unused; /* the kernel reads the current task: no state */
};

/* Returns the accessor to pass to a function: a constant, so that no BPF stack has to hold it. */
static __always_inline const struct lb_mem *mem_accessor(const struct lb_mem *mem)
{
	return 0;
}

static __always_inline int mem_is_uncached(const struct lb_mem *mem)
{
	return 0;
}

/* True if a page that cannot be read has not a single readable byte. */
static __always_inline int mem_has_pages(const struct lb_mem *mem)
{
	return 1;
}

static __always_inline int mem_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}

#else

struct mem_vec; /* base/mem_vec.h */

struct lb_mem {
	int (*read)(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr);
	/* mem_readv(); NULL: read one by one */
	long (*readv)(const struct lb_mem *mem, struct mem_vec *vec, unsigned long n);
	int uncached; /* cache.h keeps nothing between reads, so that each can fail by itself */
};

static inline int mem_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	return mem->read(mem, dst, size, addr);
}

static inline const struct lb_mem *mem_accessor(const struct lb_mem *mem)
{
	return mem;
}

static inline int mem_is_uncached(const struct lb_mem *mem)
{
	return mem->uncached;
}

static inline int mem_has_pages(const struct lb_mem *mem)
{
	(void)mem;
	return 0;
}

#endif
#endif

/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The only door to a target's memory.
 *
 * Everything that follows a target's pointers (find.h, walk*.h, user/vm, user/sym) reads through
 * mem_read(). In the kernel that is bpf_probe_read_user() on the current task; in user space it is
 * whatever `struct lb_mem` stands for: a live process (base/mem_remote), bytes that BPF shipped or
 * a test built (base/mem_image), or a fuzzer.
 *
 * mem_read() returns 0 when all `size` bytes at `addr` were read, or a negative errno. On failure
 * the contents of `dst` are undefined. It never reads in part.
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
 * A part that the verifier looks at once, whoever calls it: a global function of the BPF program.
 * Its pointers may be NULL for all that the verifier knows, and it returns a number. Weak, so that
 * no optimizer drops an argument.
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
 * Of a loop in BPF: it stays one, so that the verifier sees its body once for each turn, and the
 * processor one copy; or it becomes as many copies, in which the turn's number is a constant.
 */
#ifdef __bpf__
#define LB_ROLLED _Pragma("clang loop unroll(disable)")
#define LB_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define LB_ROLLED
#define LB_UNROLLED
#endif

/*
 * Calls step(turn, ctx) for turn = 0 .. n - 1, until it returns nonzero. Of a loop in BPF the
 * verifier follows each turn, which is most of the time that a program takes to load; of this it
 * looks at one. A turn costs a call: what is short does a few things in one. What changes from turn
 * to turn is to be in the walk, where the verifier takes it for any number.
 */
#ifdef __bpf__
#define lb_loop(n, step, ctx) bpf_loop(n, step, ctx, 0)
#else
#define lb_loop(n, step, ctx)                                                                      \
	do {                                                                                       \
		for (__u32 turn_ = 0; turn_ < (n) && !(step)(turn_, ctx); turn_++)                 \
			;                                                                          \
	} while (0)
#endif

/*
 * Words inside bytes that were read: these may alias anything. A damaged target's pointers have any
 * alignment, and so have the bytes read through them. BPF loads them all the same, but clang would
 * emit loads of single bytes there for a type that is aligned to 1.
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
 * Of BPF: loaded here, and not where what was read is used, which may have come from elsewhere. The
 * verifier wants to see one kind of pointer at an instruction.
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
	char unused; /* the kernel reads the current task: there is nothing to hold */
};

/* To hand on to a function: this way, none has to keep it on its stack over calls. */
static __always_inline const struct lb_mem *mem_accessor(const struct lb_mem *mem)
{
	return 0;
}

static __always_inline int mem_is_uncached(const struct lb_mem *mem)
{
	return 0;
}

/* Is of a page that cannot be read not a single byte to be had? */
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
	/* mem_readv(); NULL: one piece after the other */
	long (*readv)(const struct lb_mem *mem, struct mem_vec *vec, unsigned long n);
	int uncached; /* nothing is kept between reads (cache.h), so that each can fail by itself */
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

/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A direct-mapped cache of the target's pages, valid for one sample. A probe read costs a BPF
 * program 25 to 140 ns for the calls, and 5 ns more for each line that misses the CPU's caches. A
 * walker's data is clustered: frames on the Lua stack, functions and prototypes that were allocated
 * in sequence. So it reads a window of a page once in a sample, and takes its words from there. The
 * sampled thread is stopped, and no other thread may touch its VM: the copy stays true for the
 * sample.
 *
 * The window of a page is learned from previous samples: the union of what they read. It never
 * shrinks, so one sample in LB_FORGET resets it. (Blocks of a fixed size, 512 bytes to a page, take
 * a sample 10 to 35 % longer.)
 *
 * A read across the end of a page bypasses the cache: the next page may not be mapped.
 */
#ifndef LUABPF_UNWIND_CACHE_H
#define LUABPF_UNWIND_CACHE_H

#include <unwind/mem.h>

#define LB_PAGE 4096
#define LB_FORGET 256	 /* samples; power of two */
#define LB_READ_MOST 128 /* no read is longer */
#define LB_PAGES 64	 /* power of two */
#define LB_EFAULT 14	 /* BPF has no errno.h */

/* A page's tag. Apart from the bytes: a few cache lines hold all tags. */
struct lb_tag {
	__u64 addr;
	__u32 sample; /* cache->sample when this was read; anything else is stale */
	__u16 lo, hi; /* the window, offsets in the page; 0, 0: the page cannot be read */
};

/* A line more than a page: the same offsets in two pages must not share a set of the L1 cache. */
struct lb_page {
	__u8 byte[LB_PAGE + LB_LINE];
};

/* The last member of its walk: it is large. */
struct lb_cache {
	__u32 sample; /* counts samples, never 0 */
	struct lb_tag tag[LB_PAGES] LB_LINE_ALIGNED;
	/* one more: the verifier's bound of a read's end, never reached */
	struct lb_page page[LB_PAGES + 1];
};

/* Begins a sample: invalidates what was read before. */
static __always_inline void lb_begin(struct lb_cache *cache, __u32 sample)
{
	cache->sample = sample + !sample;
}

/* Maps pages to slots so that neighbours do not evict each other. */
static __always_inline __u32 lb_page_index(__u64 addr)
{
	return (__u32)(addr >> 12 ^ addr >> 18) & (LB_PAGES - 1);
}

/* Returns the cached bytes at addr, once lb_ready(). */
static __always_inline const __u8 *lb_bytes(const struct lb_cache *cache, __u64 addr)
{
	return cache->page[lb_page_index(addr)].byte + (addr & (LB_PAGE - 1));
}

/* Reads a window that has these bytes. Returns 1 when they are in it, else 0. */
LB_SUBPROG int lb_fetch(const struct lb_mem *mem, struct lb_cache *cache, __u64 addr, __u32 size)
{
	__u32 i = lb_page_index(addr), at = addr & (LB_PAGE - 1), lo, hi, len;
	struct lb_tag *t;

	if (!cache || size > LB_READ_MOST || at + size > LB_PAGE || mem_is_uncached(mem))
		return 0;
	t = &cache->tag[i];
	addr -= at;
	lo = at & ~(LB_LINE - 1);
	hi = (at + size + LB_LINE - 1) & ~(LB_LINE - 1);
	if (t->addr == addr &&
	    (t->sample == cache->sample || (t->hi && (cache->sample ^ i) & (LB_FORGET - 1)))) {
		if (!t->hi) /* it has failed in this sample */
			return 0;
		lo = lo < t->lo ? lo : t->lo;
		hi = hi > t->hi ? hi : t->hi;
	}
	lo &= LB_PAGE - LB_LINE;
	len = hi - lo;
	t->addr = addr;
	t->sample = cache->sample;
	t->lo = 0;
	t->hi = 0;
	if (len > LB_PAGE || mem_read(mem, cache->page[i].byte + lo, len, addr + lo))
		return 0;
	t->lo = (__u16)lo;
	t->hi = (__u16)hi;
	return 1;
}

/*
 * True if the bytes at addr are now in the cache; false if they cross pages or cannot be read. One
 * branch for all conditions: this is inlined everywhere, and the verifier follows each path.
 */
static __always_inline int lb_ready(const struct lb_mem *mem, struct lb_cache *cache, __u64 addr,
				    __u32 size)
{
	const struct lb_tag *t = &cache->tag[lb_page_index(addr)];
	__u32 at = addr & (LB_PAGE - 1), outside = ((at - t->lo) | (t->hi - at - size)) >> 31;

	if (!((t->addr ^ (addr - at)) | (t->sample ^ cache->sample) | outside))
		return 1;
	return lb_fetch(mem_accessor(mem), cache, addr, size);
}

/* Reads bytes that lb_ready() has not; fails in one page, as a retry would cost a page fault. */
static __always_inline int lb_read_apart(const struct lb_mem *mem, void *dst, __u32 size,
					 __u64 addr)
{
	if (mem_has_pages(mem) && (addr & (LB_PAGE - 1)) + size <= LB_PAGE)
		return -LB_EFAULT;
	return mem_read(mem, dst, size, addr);
}

/* As mem_read(). size is a constant, at most LB_READ_MOST: 2, or a multiple of 4. */
static __always_inline int lb_read(const struct lb_mem *mem, struct lb_cache *cache, void *dst,
				   __u32 size, __u64 addr)
{
	const __u8 *bytes;
	__u32 i;

	if (!lb_ready(mem, cache, addr, size))
		return lb_read_apart(mem, dst, size, addr);
	bytes = lb_bytes(cache, addr);
#ifdef __bpf__
	LB_UNROLLED
	for (i = 0; i + 8 <= size; i += 8)
		*(lb_u64 *)((__u8 *)dst + i) = lb_word(bytes, i);
	if (size & 4)
		*(lb_u32 *)((__u8 *)dst + i) = lb_half(bytes, i);
	if (size & 2)
		*(lb_u16 *)dst = lb_short(bytes, 0);
#else
	for (i = 0; i < size; i++)
		((__u8 *)dst)[i] = bytes[i];
#endif
	return 0;
}

#endif

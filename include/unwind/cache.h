/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What a sample has read of the target's memory. A probe read costs a BPF program 25 to 140 ns for
 * the calls, and bytes that are not in the processor's caches another 5 ns for each line. What a
 * walker needs lies together: frames on the Lua stack, functions and prototypes that were made one
 * after the other. So it reads a window of a page, once in a sample, and takes its words out of it.
 * The sampled thread stands still meanwhile, and no other thread may touch its VM: within one
 * sample what was read stays true.
 *
 * How wide the window of a page has to be is learned: it is what the samples before have asked for,
 * and grows when that was not enough. One sample in LB_FORGET forgets it, as it never shrinks else.
 * (Blocks of a fixed size, 512 bytes to a page, take a sample 10 to 35 % longer.)
 *
 * What crosses the end of a page is read by itself: the next page may not be there.
 */
#ifndef LUABPF_UNWIND_CACHE_H
#define LUABPF_UNWIND_CACHE_H

#include <unwind/mem.h>

#define LB_PAGE 4096
#define LB_FORGET 256	 /* samples; power of two */
#define LB_READ_MOST 128 /* no read is longer */
#define LB_PAGES 64	 /* power of two */
#define LB_EFAULT 14	 /* errno.h is none of BPF's */

/* What is known of a page. Apart from the bytes: a few cache lines hold them all. */
struct lb_tag {
	__u64 addr;
	__u32 sample; /* cache->sample when this was read; anything else is stale */
	__u16 lo, hi; /* the window, offsets in the page; 0, 0: the page cannot be read */
};

/* A line more than a page: the same offsets in two pages must not share a set of the L1 cache. */
struct lb_page {
	__u8 byte[LB_PAGE + LB_LINE];
};

/* At the end of what it belongs to: it is large. */
struct lb_cache {
	__u32 sample; /* counts samples, never 0 */
	struct lb_tag tag[LB_PAGES] LB_LINE_ALIGNED;
	/* one more: so far the verifier sees a read reach, which is never made */
	struct lb_page page[LB_PAGES + 1];
};

/* A new sample begins: what was read before is stale. */
static __always_inline void lb_begin(struct lb_cache *cache, __u32 sample)
{
	cache->sample = sample + !sample;
}

/* Neighbours do not push each other out. */
static __always_inline __u32 lb_page_index(__u64 addr)
{
	return (__u32)(addr >> 12 ^ addr >> 18) & (LB_PAGES - 1);
}

/* Where the bytes at addr are, once lb_ready(). */
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
		if (!t->hi) /* was tried */
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
 * Are the bytes at addr in the cache now? Not when they do not lie in one page that can be read.
 * One branch for all conditions: this is everywhere, and the verifier follows each way on.
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

/* Reads what was not to be had by lb_ready(). To try in vain is dear: it costs a page fault. */
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

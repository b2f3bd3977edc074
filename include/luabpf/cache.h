/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Half a read's price is the call: of 2 KiB it costs a BPF program twice that of eight bytes. And
 * what a walker needs lies together: frames on the Lua stack, functions and prototypes that were
 * made one after the other. So it reads windows into pages, once for each sample, and takes its
 * words out of them. While it runs, the sampled thread stands still, and nobody else may touch its
 * VM: within one sample what was read stays true.
 *
 * How wide a page's window has to be is learned: it is what the samples before have asked for, and
 * grows when that was not enough. Now and then it is forgotten, as it never shrinks else.
 *
 * What does not lie in one page as a whole is read by itself: the next one may not be there.
 */
#ifndef LUABPF_CACHE_H
#define LUABPF_CACHE_H

#include "mem.h"

#define LB_PAGE 4096
/* Of pages in the cache: the same offsets in them must not share places of the processor's own. */
#define LB_STRIDE (LB_PAGE + 64)
#define LB_LINE 64	 /* windows begin and end at multiples of this */
#define LB_FORGET 256	 /* samples; power of two */
#define LB_READ_MOST 128 /* no read is longer */
#define LB_PAGES 64	 /* power of two */
#define LB_EFAULT 14	 /* errno.h is none of BPF's */

/* What is in hand of a page. Apart from the bytes: a few cache lines hold them all. */
struct lb_tag {
	__u64 addr;
	__u32 sample; /* cache->sample when this was read; anything else is stale */
	__u16 lo, hi; /* the window, offsets in the page; 0, 0: the page cannot be read */
};

/*
 * A window that is likely to have what is asked for next, in a loop that asks for two kinds of
 * things. It is good until another page takes its page's place, or its window is read anew, or
 * lb_begin() finds what was read stale.
 */
struct lb_hand {
	__u64 start; /* address of its first byte */
	__u32 room;  /* so far behind it may the bytes begin that are asked for; 0: it holds none */
	__u32 index; /* of its page */
};

/* At the end of what it belongs to: it is large. */
struct lb_cache {
	__u32 sample; /* counts samples, never 0 */
	__u32 pad[7];
	struct lb_hand hand[2];
	struct lb_tag tag[LB_PAGES];
	/* a page more: so far the verifier sees a read reach, which is never made */
	__u8 bytes[LB_PAGES * LB_STRIDE + LB_PAGE];
};

/* What lies side by side does not get into each other's way. */
static __always_inline __u32 lb_page_index(__u64 addr)
{
	return (__u32)(addr >> 12 ^ addr >> 18) & (LB_PAGES - 1);
}

/* Hands that hold the page of this index let it go. */
static __always_inline void lb_let_go(struct lb_cache *cache, __u32 i)
{
	if (cache->hand[0].index == i)
		cache->hand[0].room = 0;
	if (cache->hand[1].index == i)
		cache->hand[1].room = 0;
}

/* A new sample begins: what was read before is stale. */
static __always_inline void lb_begin(struct lb_cache *cache, __u32 sample)
{
	cache->sample = sample + !sample;
	cache->hand[0].room = 0;
	cache->hand[1].room = 0;
}

/* Where the copy of addr's byte is. */
static __always_inline __u8 *lb_copy(struct lb_cache *cache, __u32 i, __u64 addr)
{
	return cache->bytes + (i & (LB_PAGES - 1)) * LB_STRIDE + (addr & (LB_PAGE - 1));
}

/* Where the bytes at addr are, once lb_ready(). */
static __always_inline const __u8 *lb_bytes(struct lb_cache *cache, __u64 addr)
{
	return lb_copy(cache, lb_page_index(addr), addr);
}

/* Reads a window that has these bytes. Returns 1 when they are in hand, else 0. */
LB_SUBPROG int lb_fetch(const struct lb_mem *mem, struct lb_cache *cache, __u64 addr, __u32 size)
{
	__u32 i = lb_page_index(addr), at = addr & (LB_PAGE - 1), lo, hi, len;
	struct lb_tag *t;

	if (!cache || size > LB_READ_MOST || at + size > LB_PAGE || mem_is_uncached(mem))
		return 0;
	t = &cache->tag[i];
	lb_let_go(cache, i);
	lo = at & ~(LB_LINE - 1);
	hi = (at + size + LB_LINE - 1) & ~(LB_LINE - 1);
	if (t->addr == addr - at &&
	    (t->sample == cache->sample || (t->hi && (cache->sample ^ i) & (LB_FORGET - 1)))) {
		if (!t->hi) /* was tried */
			return 0;
		lo = lo < t->lo ? lo : t->lo;
		hi = hi > t->hi ? hi : t->hi;
	}
	lo &= LB_PAGE - LB_LINE;
	len = hi - lo;
	t->addr = addr - at;
	t->sample = cache->sample;
	t->lo = 0;
	t->hi = 0;
	if (len > LB_PAGE || mem_read(mem, lb_copy(cache, i, lo), len, t->addr + lo))
		return 0;
	t->lo = (__u16)lo;
	t->hi = (__u16)hi;
	return 1;
}

/*
 * Are the bytes at addr in hand now? Not when they do not lie in one page that can be read. One
 * branch for all conditions: this is everywhere, and the verifier follows each way on.
 */
static __always_inline int lb_ready(const struct lb_mem *mem, struct lb_cache *cache, __u64 addr,
				    __u32 size)
{
	const struct lb_tag *t = &cache->tag[lb_page_index(addr)];
	__u32 at = addr & (LB_PAGE - 1), outside = ((at - t->lo) | (t->hi - at - size)) >> 31;

	if (!((t->addr ^ (addr - at)) | (t->sample ^ cache->sample) | outside))
		return 1;
	return lb_fetch(mem_door(mem), cache, addr, size);
}

/* Moves a hand to a window that has these bytes. Returns 1, or 0 as lb_ready(). */
LB_SUBPROG int lb_aim(const struct lb_mem *mem, struct lb_cache *cache, __u32 h, __u64 addr,
		      __u32 size)
{
	struct lb_hand *hand;
	const struct lb_tag *t;

	if (!cache)
		return 0;
	hand = &cache->hand[h & 1];
	if (!lb_ready(mem, cache, addr, size))
		return 0;
	hand->index = lb_page_index(addr);
	t = &cache->tag[hand->index & (LB_PAGES - 1)];
	hand->start = t->addr + t->lo;
	hand->room = t->hi - t->lo - size + 1;
	return 1;
}

/*
 * Where the bytes at addr are; 0 as lb_ready(). h is the hand, 0 or 1; size the same constant
 * whenever it is asked for something, at most LB_LINE.
 */
static __always_inline const __u8 *lb_hold(const struct lb_mem *mem, struct lb_cache *cache,
					   __u32 h, __u64 addr, __u32 size)
{
	const struct lb_hand *hand = &cache->hand[h];

	if (addr - hand->start >= hand->room && !lb_aim(mem_door(mem), cache, h, addr, size))
		return 0;
	return lb_copy(cache, hand->index, addr);
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

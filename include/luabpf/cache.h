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
 *
 * Where the door has whole pages in place (mem_is_direct()), nothing is copied: a page's window is
 * all of it, and what is kept of a page is its place. That stays good for the samples that follow,
 * by the rule by which the kernel keeps a processor's translations over a switch of processes: as
 * long as the address space is the same and counts no flush.
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
	__u64 place;  /* of the page, where mem_is_direct() */
	__u32 since;  /* cache->since when this was read; anything else is stale */
	__u16 lo, hi; /* the window, offsets in the page; 0, 0: the page cannot be read */
	__u64 pad;    /* none lies in two lines of the processor's cache */
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
	__u32 since;  /* the sample since which what was read is good: this one, or in place an
			 earlier one */
	__u64 space;  /* mem_space() */
	__u64 id;     /* mem_space_id() */
	__u64 moves;  /* mem_moves() when the sample began */
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

/* A new sample begins: what was read before is stale, but for places that are the same still. */
static __always_inline void lb_begin(const struct lb_mem *mem, struct lb_cache *cache, __u32 sample)
{
	__u64 id, moves;

	sample += !sample;
	cache->sample = sample;
	if (mem_is_direct(mem)) {
		cache->space = mem_space(mem);
		id = mem_space_id(mem, cache->space);
		moves = mem_moves(mem, cache->space);
		if (cache->since && cache->id == id && cache->moves == moves)
			return;
		cache->id = id;
		cache->moves = moves;
	}
	cache->since = sample;
	cache->hand[0].room = 0;
	cache->hand[1].room = 0;
}

/* Where the copy of addr's byte is. */
static __always_inline __u8 *lb_copy(struct lb_cache *cache, __u32 i, __u64 addr)
{
	return cache->bytes + (i & (LB_PAGES - 1)) * LB_STRIDE + (addr & (LB_PAGE - 1));
}

/* The bytes at addr, which is in the page that has tag i in hand. */
static __always_inline const __u8 *lb_in_page(const struct lb_mem *mem, struct lb_cache *cache,
					      __u32 i, __u64 addr)
{
	if (mem_is_direct(mem))
		return mem_place(cache->tag[i & (LB_PAGES - 1)].place + (addr & (LB_PAGE - 1)));
	return lb_copy(cache, i, addr);
}

/* Where the bytes at addr are, once lb_ready(). */
static __always_inline const __u8 *lb_bytes(const struct lb_mem *mem, struct lb_cache *cache,
					    __u64 addr)
{
	return lb_in_page(mem, cache, lb_page_index(addr), addr);
}

/*
 * The bytes that begin so far behind others, which may be in a place: the verifier wants to know of
 * a place's offset when it is made.
 */
static __always_inline const __u8 *lb_offset(const struct lb_mem *mem, const __u8 *bytes,
					     __u32 offset)
{
	return mem_is_direct(mem) ? mem_place((__u64)(bytes + offset)) : bytes + offset;
}

/*
 * Finds the place of a page: where the kernel has it, or a copy that it makes of it. Returns 1 when
 * there is one, else 0.
 */
static __always_inline int lb_fetch_place(const struct lb_mem *mem, struct lb_cache *cache, __u32 i,
					  __u64 page)
{
	struct lb_tag *t = &cache->tag[i & (LB_PAGES - 1)];
	__u8 *copy = lb_copy(cache, i, 0);

	t->addr = page;
	t->since = 0;
	t->place = mem_page(mem, cache->space, page);
	if (t->place == LB_PLACE_ASK) {
		t->place = mem_read(mem, copy, LB_PAGE, page) ? 0 : (__u64)copy;
		cache->id = 0; /* a copy is good for this sample only */
	}
	if (!t->place) /* it may be there for the next */
		return 0;
	t->since = cache->since;
	t->lo = 0;
	t->hi = LB_PAGE;
	return 1;
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
	if (mem_is_direct(mem))
		return lb_fetch_place(mem, cache, i, addr - at);
	lo = at & ~(LB_LINE - 1);
	hi = (at + size + LB_LINE - 1) & ~(LB_LINE - 1);
	if (t->addr == addr - at &&
	    (t->since == cache->since || (t->hi && (cache->sample ^ i) & (LB_FORGET - 1)))) {
		if (!t->hi) /* was tried */
			return 0;
		lo = lo < t->lo ? lo : t->lo;
		hi = hi > t->hi ? hi : t->hi;
	}
	lo &= LB_PAGE - LB_LINE;
	len = hi - lo;
	t->addr = addr - at;
	t->since = cache->since;
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

	if (!((t->addr ^ (addr - at)) | (t->since ^ cache->since) | outside))
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
	return lb_in_page(mem, cache, hand->index, addr);
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
	bytes = lb_bytes(mem, cache, addr);
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

/* As mem_read(), of what is larger, or whose size is no constant, and is read but once. */
static __always_inline int lb_read_much(const struct lb_mem *mem, struct lb_cache *cache, void *dst,
					__u32 size, __u64 addr)
{
	__u32 at = addr & (LB_PAGE - 1);

	if (!mem_is_direct(mem) || at + size > LB_PAGE)
		return mem_read(mem, dst, size, addr);
	if (!lb_ready(mem, cache, addr, 1))
		return -LB_EFAULT;
	return mem_copy(dst, size, cache->tag[lb_page_index(addr)].place + at);
}

/*
 * Where all of what is larger lies, for who goes through it but once; 0: read it by lb_read_much(),
 * as it is in no one place.
 */
static __always_inline __u64 lb_place_of(const struct lb_mem *mem, struct lb_cache *cache,
					 __u32 size, __u64 addr)
{
	__u32 at = addr & (LB_PAGE - 1);

	if (!mem_is_direct(mem) || at + size > LB_PAGE || !lb_ready(mem, cache, addr, 1))
		return 0;
	return cache->tag[lb_page_index(addr)].place + at;
}

/* Is the page that has tag i where it was found? */
LB_SUBPROG int lb_stands(const struct lb_mem *mem, const struct lb_cache *cache, __u32 i)
{
	const struct lb_tag *t;
	__u64 place;

	if (!cache || !mem_is_direct(mem)) /* by itself, for the verifier */
		return 0;
	t = &cache->tag[i & (LB_PAGES - 1)];
	if (t->since != cache->since)
		return 1;
	place = mem_page(mem, cache->space, t->addr);
	return place == t->place || place == LB_PLACE_ASK;
}

LB_SUBPROG int lb_all_stand(const struct lb_mem *mem, const struct lb_cache *cache)
{
	int stand = 1;
	__u32 i;

	if (!cache)
		return 0;
	LB_ROLLED
	for (i = 0; i < LB_PAGES; i++)
		stand &= lb_stands(mem, cache, i);
	return stand;
}

/*
 * At a sample's end: was all that is in hand, and so all that it has read in place, still the
 * target's? Else it may be anything. Other threads may change the address space all the time, and
 * seldom what samples read.
 */
static __always_inline int lb_unmoved(const struct lb_mem *mem, const struct lb_cache *cache)
{
	return !mem_is_direct(mem) || mem_moves(mem, cache->space) == cache->moves ||
	       lb_all_stand(mem, cache);
}

#endif

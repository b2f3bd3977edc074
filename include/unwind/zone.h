/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Reads the innermost zone of a VM: the last element of its zone stack, which is a table. Its length
 * is a result of the VM's operator #: found by a binary search in the array part, or, when that is
 * full, by a scan of all nodes of the hash part. There a hole, or too many nodes, make it unknown.
 *
 * Where the parts of the table are is known from user space (struct lb_zone), and the length is near
 * that of the thread's last sample (w->zone_depth), so that most samples take two reads: elements
 * around that, and a string with its text. (Not in Lua 5.5, whose array part is in descending order.)
 */
#ifndef LUABPF_UNWIND_ZONE_H
#define LUABPF_UNWIND_ZONE_H

#include <unwind/unwind.h>

#define LB_ZONE_SIZE_MOST (1 << 16) /* a larger array part is no zone stack's */
#define LB_ZONE_NODES 128	    /* a larger hash part is not scanned: the zone is unknown */
#define LB_ZONE_HALVINGS 17
#define LB_ZONE_SHORT 64 /* bytes of a string that are read at once, its head included */

enum lb_zone_type {
	LB_ZONE_NIL,
	LB_ZONE_STRING,
	LB_ZONE_OTHER,
	LB_ZONE_UNREADABLE,
};

struct lb_zone_walk {
	const struct lb_mem *mem;
	struct lb_walk *w;
	struct lb_cache *cache;
	const struct lb_zone_layout *z;
	__u64 array, node;
	__u64 value;   /* of the element that was read last; of a string, its address */
	__u32 lo, hi;  /* binary search: key lo has a value, or is 0; key hi is nil */
	__u32 failed;  /* a read failed */
	__u64 present; /* bit i: key hi + i is in the hash part */
	__u64 last;    /* the highest of these */
	__u64 last_value;
	__u32 last_type;
};

/*
 * Reads the aligned word that contains addr to w->zone_word, shifted so that the byte at addr is the
 * lowest. Not inlined: it is rare.
 */
LB_SUBPROG int lb_zone_fetch(const struct lb_mem *mem, struct lb_walk *w, struct lb_cache *cache,
			     __u64 addr)
{
	const __u8 *bytes;

	if (!w || !cache)
		return -1;
	bytes = lb_maybe(mem, w, cache, addr & ~7ULL, 8);
	if (!bytes)
		return -1;
	w->zone_word = lb_word(bytes, 0) >> 8 * (addr & 7);
	return 0;
}

static __always_inline __u64 lb_zone_word(struct lb_zone_walk *c, __u64 addr)
{
	if (!lb_zone_fetch(mem_accessor(c->mem), c->w, c->cache, addr))
		return c->w->zone_word;
	c->failed = 1;
	return 0;
}

/*
 * LuaJIT: the type of a value whose tag begins at this bit. Compiled code stores a string's address before its tag (in
 * GC64, asm_ahustore): without a tag it is taken for one, as its object's type is read, too.
 */
static __always_inline enum lb_zone_type lb_zone_tagged(__u64 word, __u32 shift)
{
	__s64 tag = (__s64)word >> shift;

	return tag == LJ_TNIL			  ? LB_ZONE_NIL
	       : tag == LJ_TSTR || (!tag && word) ? LB_ZONE_STRING
						  : LB_ZONE_OTHER;
}

/* Reads a TValue, whose type is at `type`, to c->value. */
static __always_inline enum lb_zone_type lb_zone_value(struct lb_zone_walk *c, __u64 value,
						       __u64 type)
{
	const struct lb_zone_layout *z = c->z;
	__u64 word = lb_zone_word(c, z->type_shift ? value : type);

	if (c->failed)
		return LB_ZONE_UNREADABLE;
	if (z->type_shift) {
		c->value = word & ((1ULL << (z->type_shift & 63)) - 1);
		return lb_zone_tagged(word, z->type_shift & 63);
	}
	if (!(word & 0xf))
		return LB_ZONE_NIL;
	c->value = lb_zone_word(c, value);
	return c->failed ? LB_ZONE_UNREADABLE : (word & 0xf) == 4 ? LB_ZONE_STRING : LB_ZONE_OTHER;
}

static __always_inline enum lb_zone_type lb_zone_element(struct lb_zone_walk *c, __u32 key)
{
	const struct lb_zone_layout *z = c->z;

	return lb_zone_value(c, c->array + z->value_origin + (__s64)key * z->value_stride,
			     c->array + z->type_origin + (__s64)key * z->type_stride);
}

static long lb_zone_halve(__u32 turn, struct lb_zone_walk *c)
{
	__u32 mid = (c->lo + c->hi) / 2;

	(void)turn;
	if (c->hi - c->lo <= 1)
		return 1;
	if (lb_zone_element(c, mid) == LB_ZONE_NIL)
		c->hi = mid;
	else
		c->lo = mid;
	return c->failed;
}

/* Returns a double's value when that is an integer from 1 on, else 0. */
static __always_inline __u64 lb_zone_integer(__u64 bits)
{
	__u64 exponent = (bits >> 52) - 1023, mantissa = (bits & ((1ULL << 52) - 1)) | 1ULL << 52;

	if (exponent > 31 || mantissa & ((1ULL << (52 - exponent)) - 1))
		return 0;
	return mantissa >> (52 - exponent);
}

/* Returns a node's key when that is an integer from 1 on, else 0. */
static __always_inline __u64 lb_zone_key(struct lb_zone_walk *c, __u64 node)
{
	const struct lb_zone_layout *z = c->z;
	__u64 key = lb_zone_word(c, node + z->node_key);

	if (!z->type_shift && (lb_zone_word(c, node + z->node_key_type) & 0x3f) != z->key_integer)
		return 0;
	return z->key_double ? lb_zone_integer(key) : key;
}

static long lb_zone_node(__u32 i, struct lb_zone_walk *c)
{
	__u64 node = c->node + (__u64)i * c->z->node_size, key = lb_zone_key(c, node);
	enum lb_zone_type type;

	if (c->failed)
		return 1;
	if (!key || key - c->hi > 63)
		return 0;
	type = lb_zone_value(c, node + c->z->node_value, node + c->z->node_value_type);
	if (c->failed || type == LB_ZONE_NIL)
		return c->failed;
	c->present |= 1ULL << (key - c->hi);
	if (key > c->last) {
		c->last = key;
		c->last_value = c->value;
		c->last_type = type;
	}
	return 0;
}

/* The array part is full: its last element has this type. The zones may go on in the hash part. */
static __always_inline enum lb_zone_type lb_zone_hashed(struct lb_zone_walk *c, __u32 nodes,
							enum lb_zone_type last)
{
	c->last_value = c->value;
	c->last_type = last;
	if (nodes > LB_ZONE_NODES)
		return LB_ZONE_UNREADABLE;
	lb_rare_loop(nodes, lb_zone_node, c);
	if (c->failed || c->present & (c->present + 1)) /* a hole */
		return LB_ZONE_UNREADABLE;
	if (c->present)
		c->lo = (__u32)c->last;
	c->value = c->last_value;
	return c->last_type;
}

/* Finds the length, c->lo. Returns the type of the last element, whose value c has. */
static __always_inline enum lb_zone_type lb_zone_last(struct lb_zone_walk *c,
						      const struct lb_zone *zone)
{
	enum lb_zone_type last = zone->size ? lb_zone_element(c, zone->size) : LB_ZONE_OTHER;

	c->lo = 0;
	c->hi = zone->size;
	if (last == LB_ZONE_NIL) {
		lb_rare_loop(LB_ZONE_HALVINGS, lb_zone_halve, c);
		return c->failed ? LB_ZONE_UNREADABLE : c->lo ? lb_zone_element(c, c->lo) : last;
	}
	c->lo = zone->size;
	c->hi = zone->size + 1;
	return lb_zone_hashed(c, zone->nodes, last);
}

/* ---- near the last sample's ------------------------------------------------------------------ */

#define LB_ZONE_NEAR 8 /* elements that are read at once: PUC Lua's are LB_READ_MOST bytes */

/* Elements key .. key + n - 1 of the array part, which lie in one page. */
struct lb_zone_window {
	const __u8 *bytes;
	__u32 key, n;
};

/* Reads the elements around c->w->zone_depth. */
static __always_inline int lb_zone_open(struct lb_zone_walk *c, const struct lb_zone *zone,
					struct lb_zone_window *win)
{
	__u32 depth = c->w->zone_depth, stride = (__u32)c->z->value_stride, at, fit;
	__u64 addr;

	depth = depth < zone->size ? depth : zone->size;
	win->key = depth < LB_ZONE_NEAR / 2 ? 1 : depth - (LB_ZONE_NEAR / 2 - 1);
	win->n = zone->size - win->key + 1;
	win->n = win->n < LB_ZONE_NEAR ? win->n : LB_ZONE_NEAR;
	addr = c->array + c->z->value_origin + (__u64)win->key * stride;
	at = addr & (LB_PAGE - 1);
	if (at + win->n * stride > LB_PAGE) {
		fit = (LB_PAGE - at) / stride;
		if (depth + 1 < win->key + fit) {
			win->n = fit;
		} else {
			win->key += fit;
			win->n -= fit;
			addr += (__u64)fit * stride;
		}
	}
	if (!lb_ready(mem_accessor(c->mem), c->cache, addr, win->n * stride))
		return -1;
	win->bytes = lb_bytes(c->cache, addr);
	return 0;
}

/* The word at this offset in the window. */
static __always_inline __u64 lb_zone_word_in(const struct lb_zone_window *win, __u32 at)
{
	return lb_word(win->bytes + (at & (LB_READ_MOST - 8)), 0);
}

/*
 * Returns a bit for each element of the window that is nil. It has no branch, of which the verifier
 * would follow both paths for each element.
 */
static __always_inline __u32 lb_zone_nils(const struct lb_zone_layout *z,
					  const struct lb_zone_window *win)
{
	const __u32 stride = (__u32)z->value_stride, shift = z->type_shift & 63;
	const __u64 nil = shift ? (__u64)LJ_TNIL : 0, mask = shift ? ~0ULL : 0xf;
	__u32 at = (__u32)(z->type_origin - z->value_origin), nils = 0, i;
	__u64 differs;

	LB_ROLLED
	for (i = 0; i < LB_ZONE_NEAR; i++, at += stride) {
		differs = ((__u64)((__s64)lb_zone_word_in(win, at) >> shift) & mask) ^ nil;
		nils |= (__u32)(~(differs | -differs) >> 63) << i;
	}
	return nils & ((1U << win->n) - 1);
}

/* Returns the number of zeros below the lowest bit of 8 that is set. */
static __always_inline __u32 lb_zone_first(__u32 bits)
{
	__u32 n = ~bits & (bits - 1);

	n -= n >> 1 & 0x55;
	n = (n & 0x33) + (n >> 2 & 0x33);
	return (n + (n >> 4)) & 0xf;
}

/*
 * As lb_zone_last(), in one read, when the length is near that of the thread's last sample. -1:
 * lb_zone_last() has to find it.
 */
static __always_inline int lb_zone_last_near(struct lb_zone_walk *c, const struct lb_zone *zone)
{
	const struct lb_zone_layout *z = c->z;
	struct lb_zone_window win;
	__u32 nils, n, at;
	__u64 type;

	if (!zone->size || z->value_stride < 8 || z->value_stride > LB_READ_MOST / LB_ZONE_NEAR ||
	    lb_zone_open(c, zone, &win))
		return -1;
	nils = lb_zone_nils(z, &win);
	n = nils ? lb_zone_first(nils) : win.n;
	if (nils + (1U << n) != 1U << win.n || /* a hole */
	    (!n && win.key > 1) ||	       /* all nil: the length is below the window */
	    (!nils && (zone->nodes || win.key + win.n <= zone->size))) /* or longer */
		return -1;
	c->lo = win.key + n - 1;
	if (!n)
		return LB_ZONE_NIL;
	at = (n - 1) * (__u32)z->value_stride;
	c->value = lb_zone_word_in(&win, at);
	type = lb_zone_word_in(&win, at + (__u32)(z->type_origin - z->value_origin));
	if (!z->type_shift)
		return (type & 0xf) == 4 ? LB_ZONE_STRING : LB_ZONE_OTHER;
	c->value &= (1ULL << (z->type_shift & 63)) - 1;
	return lb_zone_tagged(type, z->type_shift & 63);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A field of an object of which up to 128 bytes were read. The caller masks a shorter one. */
static __always_inline __u32 lb_zone_field(const __u8 *bytes, __u16 offset)
{
	return lb_half(bytes + (offset & 0x7c), 0) >> 8 * (offset & 3);
}

static __always_inline __u64 lb_zone_hash_end(__u64 hash)
{
	hash *= 0xd6e8feb86659fd93ULL;
	hash = (hash ^ hash >> 32) >> 8;
	return hash < LB_ZONE_NAMES ? hash + LB_ZONE_NAMES : hash;
}

/*
 * Copies the name of a string at str to the walk's record and returns its hash, in one read, when
 * all of it is in LB_ZONE_SHORT bytes, as most are. 0: it is not; lb_zone_name() reads it.
 */
static __always_inline __u64 lb_zone_short(struct lb_zone_walk *c, __u64 str)
{
	const struct lb_zone_layout *z = c->z;
	struct lb_rec_zone *rec = &c->w->zone;
	const __u8 *bytes;
	__u64 hash, word;
	__u32 len, i;

	if (!lb_ready(mem_accessor(c->mem), c->cache, str, LB_ZONE_SHORT))
		return 0;
	bytes = lb_bytes(c->cache, str);
	len = lb_zone_field(bytes, z->str_shortlen ? z->str_shortlen : z->str_len);
	if (z->str_shortlen)
		len &= 0xff;
	if ((lb_zone_field(bytes, z->gc_type) & z->gc_mask) != z->gc_str ||
	    (!z->str_len32 && !z->str_shortlen && lb_zone_field(bytes, z->str_len + 4)) ||
	    z->str_text > LB_ZONE_SHORT / 2 || len > LB_ZONE_SHORT - (__u32)z->str_text)
		return 0;
	hash = z->seed ^ len;
	bytes += z->str_text & (LB_ZONE_SHORT - 1);
	LB_ROLLED
	for (i = 0; i < LB_ZONE_SHORT && i < len; i += 8) {
		word = lb_word(bytes, i);
		if (len - i < 8)
			word &= ~0ULL >> (64 - 8 * (len - i));
		*(__u64 *)(rec->text + i) = word;
		hash = lb_zone_mix(hash, word);
	}
	rec->len = len;
	return lb_zone_hash_end(hash);
}

/* The same of len bytes at addr. */
static __always_inline __u64 lb_zone_copy(struct lb_zone_walk *c, __u64 addr, __u64 len)
{
	struct lb_rec_zone *rec = &c->w->zone;
	__u32 n = len < LB_ZONE_TEXT ? (__u32)len : LB_ZONE_TEXT, i;
	__u64 hash = c->z->seed ^ len;

	*(__u64 *)(rec->text + (n & 0xf8)) = 0; /* behind the last byte */
	if (n && mem_read(c->mem, rec->text, n, addr))
		return LB_ZONE_UNKNOWN;
	rec->len = len < ~0U ? (__u32)len : ~0U;
	LB_ROLLED
	for (i = 0; i < sizeof(rec->text) && i < n; i += 8)
		hash = lb_zone_mix(hash, *(const __u64 *)(rec->text + i));
	return lb_zone_hash_end(hash);
}

/* The same of any string. */
static __always_inline __u64 lb_zone_name(struct lb_zone_walk *c, __u64 str)
{
	const struct lb_zone_layout *z = c->z;
	__u8 type = lb_zone_word(c, str + z->gc_type) & z->gc_mask;
	int is_short = type == z->gc_str && z->str_shortlen;
	__u64 len = lb_zone_word(c, str + (is_short ? z->str_shortlen : z->str_len));
	__u64 text = str + z->str_text;

	if (is_short)
		len &= 0xff;
	else if (z->str_len32)
		len = (__u32)len;
	if (z->longstr_away && type == z->gc_longstr)
		text = lb_zone_word(c, text);
	if (c->failed || (type != z->gc_str && type != z->gc_longstr))
		return LB_ZONE_UNKNOWN;
	return lb_zone_copy(c, text, len);
}

/* Returns a word, see enum lb_zone_word; for a hash, w->zone has the name. */
static __always_inline __u64 lb_zone_read(const struct lb_mem *mem, struct lb_walk *w,
					  struct lb_cache *cache, const struct lb_zone_layout *z,
					  const struct lb_zone *zone)
{
	struct lb_zone_walk c = {.mem = mem, .w = w, .cache = cache, .z = z};
	__u64 hash;
	int type;

	if (zone->size > LB_ZONE_SIZE_MOST || (zone->array | zone->node) & 7)
		return LB_ZONE_UNKNOWN;
	c.array = zone->array;
	c.node = zone->node;
	type = lb_zone_last_near(&c, zone);
	if (type < 0)
		type = lb_zone_last(&c, zone);
	w->zone_depth = c.lo;
	if (type == LB_ZONE_UNREADABLE)
		return LB_ZONE_UNKNOWN;
	if (!c.lo)
		return LB_ZONE_EMPTY;
	if (type != LB_ZONE_STRING)
		return LB_ZONE_NO_STRING;
	if (c.value & 7) /* no object is there */
		return LB_ZONE_UNKNOWN;
	hash = lb_zone_short(&c, c.value);
	return hash ? hash : lb_zone_name(&c, c.value);
}

#endif

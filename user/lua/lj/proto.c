/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a prototype. The VM allocates it in one piece (lj_parse.c, lj_bcread.c):
 *
 *     GCproto | bytecode | ... GC constants | number constants | upvalues | lineinfo uvinfo varinfo
 *                                           ^ k: constants count down and up from here
 *
 * One read copies all but the text of strings. Those were interned as the chunk was compiled, close
 * together, and are gathered. check_head() makes sure that every table is inside the allocation.
 */
#include "proto.h"
#include "proto_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>
#include <unwind/lj/fingerprint.h>

#include "base/cleanup.h"
#include "base/mem_gather.h"
#include "lua/foreign.h"
#include "bc.h"

#define MAX_SIZEPT (64u << 20)
#define MAX_KGC 65536 /* operand D */
#define FIRST_READ 64 /* bytes of a string: head and text of most names */

/* Offsets of the tables from the start of the prototype, checked. 0: not there. */
struct shape {
	uint32_t size, sizebc, k, nkgc;
	uint32_t lineinfo, uvinfo, varinfo;
};

/* Converts a pointer into [pt + from, pt + size] to an offset. NULL is 0. */
static bool inside(uint64_t ptr, uint64_t pt, uint32_t from, uint32_t size, uint32_t *offset)
{
	*offset = 0;
	if (!ptr)
		return true;
	if (ptr - pt < from || ptr - pt > size)
		return false;
	*offset = (uint32_t)(ptr - pt);
	return true;
}

static bool check_head(const struct lj_layout *lj, const uint8_t *head, uint64_t pt,
		       struct shape *s)
{
	uint32_t sizekn = foreign_half(head, LJ_OFF(lj, PROTO_SIZEKN));
	uint32_t numline = foreign_half(head, LJ_OFF(lj, PROTO_NUMLINE));
	uint64_t width = numline < 256 ? 1 : numline < 65536 ? 2 : 4;
	uint64_t code_end;

	s->size = foreign_half(head, LJ_OFF(lj, PROTO_SIZEPT));
	s->sizebc = foreign_half(head, LJ_OFF(lj, PROTO_SIZEBC));
	s->nkgc = foreign_half(head, LJ_OFF(lj, PROTO_SIZEKGC));
	code_end = LJ_OFF(lj, PROTO_SIZE) + 4ULL * s->sizebc + lj_ref_size(lj) * (uint64_t)s->nkgc;
	if (head[LJ_OFF(lj, PROTO_GCT)] != LJ_GCT_PROTO || s->size > MAX_SIZEPT || !s->sizebc ||
	    code_end > s->size)
		return false;
	if (!inside(lj_ref_at(lj, head, LJ_OFF(lj, PROTO_K)), pt, (uint32_t)code_end, s->size,
		    &s->k) ||
	    !s->k || s->k & 7 || s->k + 8ULL * sizekn > s->size)
		return false;
	if (!inside(lj_ref_at(lj, head, LJ_OFF(lj, PROTO_LINEINFO)), pt, s->k, s->size,
		    &s->lineinfo) ||
	    !inside(lj_ref_at(lj, head, LJ_OFF(lj, PROTO_UVINFO)), pt, s->k, s->size, &s->uvinfo) ||
	    !inside(lj_ref_at(lj, head, LJ_OFF(lj, PROTO_VARINFO)), pt, s->k, s->size, &s->varinfo))
		return false;
	if (s->lineinfo && s->lineinfo + width * (s->sizebc - 1) > s->size)
		return false;
	return s->uvinfo <= s->varinfo || !s->varinfo;
}

static struct lj_part read_part(const struct lb_mem *mem, struct lj_proto *p, uint32_t from,
				uint32_t to)
{
	struct lj_part part = {.p = p->bytes + from};

	if (from && from < to)
		part.len = p->complete ? to - from
				       : foreign_prefix(mem, p->bytes + from, p->addr + from,
							to - from, 8);
	return part;
}

/* True if the table of variables ends at the end of the allocation. If not, the memory was freed,
 * and its allocator (dlmalloc's kind, as LuaJIT's own) has written to the last word. */
static bool ends_with_varinfo(const struct lj_proto *p)
{
	struct lj_varcursor c;
	struct lj_var var;

	lj_var_begin(p, &c);
	while (lj_var_next(&c, &var))
		;
	return !p->varinfo.len || c.p + 1 == c.end;
}

/* Fills p->bytes and the parts: by one read if possible, else part by part. */
static int read_parts(const struct lb_mem *mem, struct lj_proto *p, const struct shape *s)
{
	uint32_t code = LJ_OFF(&p->lj, PROTO_SIZE), code_end = code + 4 * s->sizebc;
	uint32_t debug_end = s->uvinfo ? s->uvinfo : s->varinfo ? s->varinfo : s->size;

	p->bytes = calloc(1, s->size);
	if (!p->bytes)
		return -ENOMEM;
	p->size = s->size;
	p->complete = !mem_read(mem, p->bytes, s->size, p->addr);
	p->bc = read_part(mem, p, code, code_end);
	p->lineinfo = read_part(mem, p, s->lineinfo, debug_end);
	p->uvinfo = read_part(mem, p, s->uvinfo, s->varinfo ? s->varinfo : s->size);
	p->varinfo = read_part(mem, p, s->varinfo, s->size);
	p->cut |= p->complete && !ends_with_varinfo(p);
	p->has_lines = s->lineinfo;
	p->has_uvinfo = s->uvinfo;
	return 0;
}

/* Reads a GCstr's text into dst: at most max bytes, then a NUL. If only a prefix can be read,
 * copies that and sets *cut. */
static int read_str(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t ref, char *dst,
		    size_t max, size_t *len, uint64_t *id, bool *cut)
{
	uint32_t want, have = 0, text = lj_str_text(lj);
	uint8_t head[FIRST_READ];

	if (!foreign_plausible(ref))
		return -EBADMSG;
	if (!mem_read(mem, head, sizeof(head), ref))
		have = sizeof(head) - text;
	else if (mem_read(mem, head, text, ref))
		return -EFAULT;
	if (head[LJ_OFF(lj, STR_GCT)] != LJ_GCT_STR)
		return -EBADMSG;
	want = foreign_half(head, lj->str_len);
	if (want > max)
		want = (uint32_t)max;
	if (want <= have) {
		memcpy(dst, head + text, want);
	} else {
		uint32_t got = foreign_prefix(mem, dst, ref + text, want, 8);

		*cut |= got < want;
		want = got;
	}
	dst[want] = '\0';
	*len = want;
	*id = foreign_half(head, LJ_OFF(lj, STR_SID)) |
	      (uint64_t)foreign_half(head, LJ_OFF(lj, STR_HASH)) << 32;
	return 0;
}

static int read_chunkname(const struct lb_mem *mem, struct lj_proto *p, uint64_t ref)
{
	char text[PROTO_MAX_CHUNKNAME + 1];
	int err = read_str(mem, &p->lj, ref, text, PROTO_MAX_CHUNKNAME, &p->chunklen, &p->chunkid,
			   &p->cut);

	return err ? err : proto_text_dup(text, p->chunklen, &p->chunkname);
}

/* Reads the type of a constant and, for strings, the text. Unreadable ones stay unknown. */
static int read_constant(const struct lb_mem *mem, struct lj_proto *p, struct lj_kgc *k)
{
	char text[PROTO_MAX_NAME + 1];
	uint8_t head[16];
	size_t len;
	int err;

	err = read_str(mem, &p->lj, k->ref, text, PROTO_MAX_NAME, &len, &k->id, &p->cut);
	if (!err) {
		k->gct = LJ_GCT_STR;
		k->len = (uint32_t)len;
		err = proto_texts_add(&p->names, text, len, &k->str);
		return err == -ENOMEM ? err : 0;
	}
	if (foreign_plausible(k->ref) && !mem_read(mem, head, sizeof(head), k->ref))
		k->gct = head[LJ_OFF(&p->lj, STR_GCT)];
	if (k->gct < LJ_GCT_STR || k->gct > LJ_GCT_UDATA) /* no valid type: freed */
		p->cut = true;
	return 0;
}

/* Fills in the references: from the allocation, or one by one if that is incomplete. */
static void read_refs(const struct lb_mem *mem, struct lj_proto *p, uint32_t k)
{
	uint32_t i, size = lj_ref_size(&p->lj);

	for (i = 0; i < p->nkgc; i++) {
		uint32_t at = k - size * (i + 1);

		if (!p->complete && mem_read(mem, p->bytes + at, size, p->addr + at))
			return;
		p->kgc[i].ref = lj_ref_at(&p->lj, p->bytes, at);
	}
}

/* Prefetches the objects of the constants from first on. */
static int gather(struct mem_gather *g, const struct lj_proto *p, uint32_t first)
{
	uint32_t i;

	for (i = first; i < p->nkgc && i - first < MEM_GATHER_MAX; i++)
		if (foreign_plausible(p->kgc[i].ref))
			mem_gather_want(g, p->kgc[i].ref);
	return mem_gather_read(g);
}

static int read_constants(const struct lb_mem *mem, struct lj_proto *p, const struct shape *s)
{
	struct mem_gather g __cleanup(mem_gather_clear);
	uint32_t i;
	int err = 0;

	mem_gather_init(&g, mem);
	p->nkgc = s->nkgc < MAX_KGC ? s->nkgc : MAX_KGC;
	if (!p->nkgc)
		return 0;
	p->kgc = calloc(p->nkgc, sizeof(*p->kgc));
	if (!p->kgc)
		return -ENOMEM;
	read_refs(mem, p, s->k);
	for (i = 0; i < p->nkgc && !err; i++) {
		if (i % MEM_GATHER_MAX == 0)
			err = gather(&g, p, i);
		if (!err)
			err = read_constant(&g.mem, p, &p->kgc[i]);
	}
	return err;
}

/* Returns lj_proto_fp() of unwind/lj/func.h, from the same bytes. */
static uint32_t fingerprint(const struct lb_mem *mem, const struct lj_layout *lj,
			    const uint8_t *head, uint64_t pt)
{
	uint8_t bytes[LJ_FP_DEBUG] __attribute__((aligned(8))) = {0};
	struct lj_fp_parts parts;
	uint64_t h = lj_fp_head(lj, head, foreign_word(head, LJ_OFF(lj, PROTO_KIND)), pt, &parts);

	if (!mem_read(mem, bytes, LJ_OFF(lj, STR_SIZE), parts.name))
		h = lb_fp_word(h, LJ_FP_FACTOR_NAME, lj_fp_str(lj, bytes));
	if (parts.ndebug && !mem_read(mem, bytes, parts.ndebug, parts.debug))
		h = lj_fp_debug(h, bytes, parts.ndebug);
	if (parts.nkn && !mem_read(mem, bytes, 8 * parts.nkn, parts.kgc + LJ_OFF(lj, FP_KGC)))
		h = lj_fp_kn(h, bytes, parts.nkn);
	if (!parts.nkgc || mem_read(mem, bytes, LJ_OFF(lj, FP_KGC), parts.kgc))
		return lb_fp_end(h);
	h = lj_fp_kgc(lj, h, bytes, parts.nkgc);
	if (!mem_read(mem, bytes, LJ_OFF(lj, STR_SIZE),
		      lj_ref_at(lj, bytes, LJ_OFF(lj, FP_KGC_FIRST))))
		h = lb_fp_word(h, LJ_FP_FACTOR_STR, lj_fp_str(lj, bytes));
	return lb_fp_end(h);
}

/* Checks that the same prototype is still there: the target runs meanwhile. */
static int check_again(const struct lb_mem *mem, const struct lj_proto *p)
{
	uint8_t head[LJ_PROTO_SIZE] __attribute__((aligned(8)));
	int err = mem_read(mem, head, LJ_OFF(&p->lj, PROTO_SIZE), p->addr);

	if (err)
		return err;
	return fingerprint(mem, &p->lj, head, p->addr) == p->fingerprint ? 0 : -EAGAIN;
}

static int read_all(const struct lb_mem *mem, struct lj_proto *p, const uint8_t *head,
		    const struct shape *s)
{
	const struct lj_layout *lj = &p->lj;
	int err = read_chunkname(mem, p, lj_ref_at(lj, head, LJ_OFF(lj, PROTO_CHUNKNAME)));

	if (err)
		return err;
	p->fingerprint = fingerprint(mem, lj, head, p->addr);
	p->sizebc = s->sizebc;
	p->numline = foreign_half(head, LJ_OFF(lj, PROTO_NUMLINE));
	p->firstline = (int32_t)foreign_half(head, LJ_OFF(lj, PROTO_FIRSTLINE));
	p->sizeuv = head[LJ_OFF(lj, PROTO_SIZEUV)];
	p->numparams = head[LJ_OFF(lj, PROTO_NUMPARAMS)];
	p->framesize = head[LJ_OFF(lj, PROTO_FRAMESIZE)];
	p->flags = head[LJ_OFF(lj, PROTO_FLAGS)];
	err = read_parts(mem, p, s);
	if (!err)
		err = read_constants(mem, p, s);
	return err ? err : check_again(mem, p);
}

int lj_proto_read(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t pt,
		  struct lj_proto **out)
{
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;
	/* unwind/lj/fingerprint.h reads words: aligned, and none beyond the head */
	uint8_t head[LJ_PROTO_SIZE] __attribute__((aligned(8)));
	struct shape shape;
	int err;

	if (!foreign_plausible(pt))
		return -EBADMSG;
	err = mem_read(mem, head, LJ_OFF(layout, PROTO_SIZE), pt);
	if (err)
		return err;
	if (!check_head(layout, head, pt, &shape))
		return -EBADMSG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->addr = pt;
	p->lj = *layout;
	err = read_all(mem, p, head, &shape);
	if (err)
		return err;
	*out = TAKE_PTR(p);
	return 0;
}

void lj_proto_free(struct lj_proto **p)
{
	if (!*p)
		return;
	free((*p)->bytes);
	free((*p)->kgc);
	proto_texts_clear(&(*p)->names);
	free((*p)->chunkname);
	free(*p);
	*p = NULL;
}

/* True for instructions that the VM patches as it compiles and despecializes: loops, returns,
 * iterators, function heads (lj_trace.c, lj_dispatch.c). They are no part of a function's
 * identity. */
static bool patchable(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return op >= LJ_BC_RETM || op == LJ_BC_ITERC || op == LJ_BC_ITERN || op == LJ_BC_ISNEXT;
}

static uint64_t hash_constants(uint64_t h, const struct lj_proto *p, bool by_id)
{
	uint32_t i;

	for (i = 0; i < p->nkgc; i++) {
		if (p->kgc[i].gct == LJ_GCT_PROTO) /* a child: definitions name it by its address */
			h = proto_hash_bytes(h, &p->kgc[i].ref, sizeof(p->kgc[i].ref));
		else if (p->kgc[i].str && by_id)
			h = proto_hash_bytes(h, &p->kgc[i].id, sizeof(p->kgc[i].id));
		else if (p->kgc[i].str)
			h = proto_hash_str(h, p->kgc[i].str);
	}
	return h;
}

/* Without the last word: an allocator of dlmalloc's kind writes to it as it frees the prototype. */
static uint64_t hash_part(uint64_t h, const struct lj_proto *p, const struct lj_part *part,
			  bool without_last)
{
	size_t from = (size_t)(part->p - p->bytes), last = (p->size - 1) & ~7UL;
	size_t len = part->len;

	if (without_last && from + len > last)
		len = from < last ? last - from : 0;
	return proto_hash_bytes(h, part->p, len);
}

static uint64_t hash_of(const struct lj_proto *p, bool by_id)
{
	uint64_t h = PROTO_HASH_START;
	uint32_t i;

	h = proto_hash_bytes(h, &p->firstline, sizeof(p->firstline));
	h = proto_hash_bytes(h, &p->numline, sizeof(p->numline));
	h = proto_hash_bytes(h, &p->sizebc, sizeof(p->sizebc));
	if (by_id)
		h = proto_hash_bytes(h, &p->chunkid, sizeof(p->chunkid));
	else
		h = proto_hash_bytes(h, p->chunkname, p->chunklen + 1);
	for (i = 0; lj_proto_has_ins(p, i); i++) {
		uint32_t ins = lj_proto_ins(p, i);

		if (lj_bc_op(ins) ==
		    LJ_BC_KSHORT) /* a number: neither lines nor names depend on it */
			ins &= 0xffff;
		if (!patchable(ins))
			h = proto_hash_bytes(h, &ins, sizeof(ins));
	}
	h = hash_part(h, p, &p->lineinfo, by_id);
	h = hash_part(h, p, &p->uvinfo, by_id);
	h = hash_part(h, p, &p->varinfo, by_id);
	return hash_constants(h, p, by_id);
}

uint64_t lj_proto_hash(const struct lj_proto *p)
{
	return hash_of(p, false);
}

bool lj_proto_same(const struct lj_proto *a, const struct lj_proto *b)
{
	return hash_of(a, true) == hash_of(b, true);
}

uint32_t lj_proto_fingerprint(const struct lj_proto *p)
{
	return p->fingerprint;
}

bool lj_proto_complete(const struct lj_proto *p)
{
	return p->complete && !p->cut;
}

uint32_t lj_proto_sizebc(const struct lj_proto *p)
{
	return p->sizebc;
}

int32_t lj_proto_firstline(const struct lj_proto *p)
{
	return p->firstline;
}

bool lj_proto_is_main(const struct lj_proto *p)
{
	return p->flags & LJ_PROTO_VARARG && !p->numparams && !p->sizeuv;
}

uint32_t lj_proto_shape(const struct lj_proto *p)
{
	const uint32_t parts[] = {p->sizebc,	p->numline,   p->nkgc,
				  p->numparams, p->framesize, p->sizeuv};

	return (uint32_t)proto_hash_bytes(PROTO_HASH_START, parts, sizeof(parts));
}

/* The number constants: bytes of a complete copy. */
static struct lj_part numbers(const struct lj_proto *p)
{
	uint64_t k = lj_ref_at(&p->lj, p->bytes, LJ_OFF(&p->lj, PROTO_K)) - p->addr;
	uint32_t n = foreign_half(p->bytes, LJ_OFF(&p->lj, PROTO_SIZEKN));

	return k <= p->size && n <= (p->size - k) / 8 ? (struct lj_part){p->bytes + k, 8 * n}
						      : (struct lj_part){};
}

bool lj_proto_knum(const struct lj_proto *p, uint32_t i, uint64_t *tv)
{
	struct lj_part part = p->complete ? numbers(p) : (struct lj_part){};

	if (i >= part.len / 8)
		return false;
	memcpy(tv, part.p + 8UL * i, sizeof(*tv));
	return true;
}

uint32_t lj_proto_contents(const struct lj_proto *p)
{
	uint64_t h = lj_proto_shape(p);
	struct lj_part part;
	uint32_t i;

	for (i = 0; lj_proto_has_ins(p, i); i++) {
		uint32_t ins = lj_proto_ins(p, i);

		if (!patchable(ins))
			h = proto_hash_bytes(h, &ins, sizeof(ins));
	}
	for (i = 0; i < p->nkgc; i++) {
		h = proto_hash_bytes(h, &p->kgc[i].gct, sizeof(p->kgc[i].gct));
		if (p->kgc[i].str)
			h = proto_hash_str(h, p->kgc[i].str);
	}
	if (!p->complete) /* the numbers are not complete either */
		return (uint32_t)h;
	part = numbers(p);
	return (uint32_t)(part.len ? proto_hash_bytes(h, part.p, part.len) : h);
}

uint32_t lj_proto_child(const struct lj_proto *p, uint64_t child)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->nkgc; i++) {
		n += p->kgc[i].gct == LJ_GCT_PROTO;
		if (p->kgc[i].gct == LJ_GCT_PROTO && p->kgc[i].ref == child)
			return n;
	}
	return 0;
}

const char *lj_proto_chunkname(const struct lj_proto *p, size_t *len)
{
	if (len)
		*len = p->chunklen;
	return p->chunkname;
}

int32_t lj_proto_line(const struct lj_proto *p, uint32_t bcpos)
{
	uint32_t width = p->numline < 256 ? 1 : p->numline < 65536 ? 2 : 4;
	uint32_t delta = 0;

	if (!p->has_lines || bcpos > p->sizebc)
		return 0;
	if (bcpos == p->sizebc)
		return (int32_t)((uint32_t)p->firstline + p->numline);
	if (!bcpos)
		return p->firstline;
	if ((uint64_t)bcpos * width > p->lineinfo.len)
		return -1;
	memcpy(&delta, p->lineinfo.p + (size_t)(bcpos - 1) * width, width);
	if (delta > p->numline)
		return -1;
	return (int32_t)((uint32_t)p->firstline + delta);
}

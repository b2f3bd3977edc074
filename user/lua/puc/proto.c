/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a prototype (lobject.h, Proto). The head has the address and number of elements of each
 * part:
 *
 *     Proto -> code, lineinfo, abslineinfo    numbers
 *           -> k, upvalues, locvars           elements that may point to a string
 *           -> p                              pointers to children
 *           -> source
 *
 * Each part is read separately, up to a bound, as far as it is readable; only the head and the
 * source are required.
 */
#include "proto_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/puc/fingerprint.h>

#include "base/cleanup.h"
#include "base/mem_gather.h"
#include "lua/foreign.h"
#include "str.h"

#define MAX_CODE (256u << 10) /* instructions; the rest of a longer function is unknown */
#define MAX_K (128u << 10)    /* operand Bx */
#define MAX_CHILDREN (64u << 10)
#define MAX_LOCALS (32u << 10) /* SHRT_MAX (lparser.c) */
#define MAX_UPVALS 256	       /* operand B */
#define CACHED 256	       /* strings: names repeat */

/* lobject.h */
struct loc_var {
	uint64_t varname;
	int32_t startpc, endpc;
};
struct abs_line_info {
	int32_t pc, line;
};
#define ABSLINEINFO (-0x80) /* ldebug.h: the line is in abslineinfo */
#define TT_BASIC 0x0f	    /* type of a TValue without its variant */
#define LUA_TNIL 0
#define LUA_TBOOLEAN 1
#define LUA_TNUMBER 3
#define LUA_TSTRING 4

struct proto_reader {
	const struct lb_mem *mem;
	const struct puc_layout *puc;
	struct puc_proto *p;
	struct mem_gather near; /* the pointees of the current part's elements */
	struct {
		uint64_t ref;
		const char *str;
	} cache[CACHED];
	uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8)));
};

/* A part of the prototype: `have` of its `count` elements were read. */
struct part {
	uint8_t *bytes;
	uint32_t count, have;
};

static void reader_free(struct proto_reader **r)
{
	if (*r)
		mem_gather_clear(&(*r)->near);
	free(*r);
	*r = NULL;
}

static void free_part(struct part *part)
{
	free(part->bytes);
}

static uint32_t head_size(const struct proto_reader *r, uint16_t field)
{
	return lb_half(r->head, field);
}

static uint64_t head_ptr(const struct proto_reader *r, uint16_t field)
{
	return lb_word(r->head, field);
}

/* True if it may be a part's address. Alignment is not required: 5.5's fixed buffers may lie in a
 * file's image. */
static bool address(uint64_t ptr)
{
	return ptr && !(ptr >> 47);
}

/* Reads a part. ptr and size are the head's fields of its address and its number of elements. */
static int read_part(const struct proto_reader *r, uint16_t ptr, uint16_t size, uint32_t element,
		     uint32_t max, struct part *out)
{
	uint64_t addr = head_ptr(r, ptr);
	uint32_t n;

	out->count = head_size(r, size);
	out->have = 0;
	n = out->count < max ? out->count : max;
	if (!n)
		return 0;
	out->bytes = malloc((size_t)n * element);
	if (!out->bytes)
		return -ENOMEM;
	if (address(addr))
		out->have = foreign_prefix(r->mem, out->bytes, addr, n * element, 1) / element;
	if (out->have < out->count)
		r->p->complete = false;
	return 0;
}

/* Returns the text at ref, stored in the prototype; NULL if it cannot be read. */
static const char *read_name(struct proto_reader *r, uint64_t ref)
{
	unsigned slot = (unsigned)(ref >> 4 ^ ref >> 12) % CACHED;
	char text[PROTO_MAX_NAME + 1];
	const char *str = NULL;
	bool cut = false;
	size_t len;

	if (r->cache[slot].ref == ref && r->cache[slot].str)
		return r->cache[slot].str;
	if (puc_str_read(&r->near.mem, r->puc, ref, text, PROTO_MAX_NAME, &len, &cut) || cut ||
	    proto_texts_add(&r->p->names, text, len, &str)) {
		r->p->complete = false;
		return NULL;
	}
	r->cache[slot].ref = ref;
	r->cache[slot].str = str;
	return str;
}

/* Returns the pointer in an element; 0: it has none. */
static uint64_t first_word(const uint8_t *element)
{
	uint64_t ref;

	memcpy(&ref, element, sizeof(ref));
	return ref;
}

static uint64_t string_constant(const uint8_t *tv)
{
	return (tv[PUC_TV_TT] & TT_BASIC) == LUA_TSTRING ? first_word(tv + PUC_TV_VALUE) : 0;
}

/*
 * Called before element i of a part is parsed: prefetches the pointees of it and those after it.
 * Strings and children were allocated as the chunk was compiled, close to each other.
 */
static int gather(struct proto_reader *r, const struct part *part, uint32_t element,
		  uint64_t (*ref)(const uint8_t *element), uint32_t i)
{
	uint32_t end = part->have - i < MEM_GATHER_MAX ? part->have : i + MEM_GATHER_MAX;

	if (i % MEM_GATHER_MAX)
		return 0;
	for (; i < end; i++) {
		uint64_t addr = ref(part->bytes + (size_t)i * element);

		if (foreign_plausible(addr))
			mem_gather_want(&r->near, addr);
	}
	return mem_gather_read(&r->near);
}

static int read_code(struct proto_reader *r)
{
	struct part part __cleanup(free_part) = {0};
	int err =
		read_part(r, r->puc->p_code, r->puc->p_sizecode, sizeof(uint32_t), MAX_CODE, &part);

	r->p->ncode = part.have;
	r->p->code = (uint32_t *)(void *)TAKE_PTR(part.bytes);
	return err;
}

/* 5.1 - 5.3: a line for each instruction. */
static void lines_plain(struct puc_proto *p, const struct part *info)
{
	uint32_t i;

	for (i = 0; i < p->nlines; i++) {
		int32_t line;

		memcpy(&line, info->bytes + i * sizeof(line), sizeof(line));
		p->lines[i] = line < 0 ? -1 : line;
	}
}

/*
 * 5.4 on: the difference to the line before, or an entry of abslineinfo, which is sorted by pc. If
 * an entry is missing, lines are unknown up to the next one.
 */
static void lines_delta(struct puc_proto *p, const struct part *info, const struct part *abs)
{
	struct abs_line_info a = {.pc = -1};
	int64_t line = p->linedefined;
	bool known = line >= 0;
	uint32_t i, j = 0;

	for (i = 0; i < p->nlines; i++) {
		int8_t delta = (int8_t)info->bytes[i];

		while (a.pc < (int32_t)i && j < abs->have)
			memcpy(&a, abs->bytes + j++ * sizeof(a), sizeof(a));
		if (a.pc == (int32_t)i) {
			line = a.line;
			known = true;
		} else if (delta == ABSLINEINFO) {
			known = false;
		} else {
			line += delta;
		}
		p->lines[i] = known && line >= 0 && line <= INT32_MAX ? (int32_t)line : -1;
	}
}

/*
 * True if the lines are the function's own. A compiler's last instruction has the last line of all.
 * A prototype that is read from the live process may have been freed since its sample: its arrays
 * may hold anything.
 */
static bool lines_are_own(const struct puc_proto *p)
{
	int32_t last = p->lastlinedefined;
	uint32_t i;

	if (!p->linedefined) /* a main function does not know its last line */
		last = p->nlines == p->sizecode ? p->lines[p->nlines - 1] : -1;
	if (last < 0)
		last = INT32_MAX;
	for (i = 0; i < p->nlines; i++)
		if (p->lines[i] >= 0 && (p->lines[i] < p->linedefined || p->lines[i] > last))
			return false;
	return true;
}

static int read_lines(struct proto_reader *r)
{
	const struct puc_layout *puc = r->puc;
	struct part info __cleanup(free_part) = {0}, abs __cleanup(free_part) = {0};
	bool delta = puc->p_abslineinfo != PUC_NONE;
	struct puc_proto *p = r->p;
	int err;

	err = read_part(r, puc->p_lineinfo, puc->p_sizelineinfo,
			delta ? sizeof(int8_t) : sizeof(int32_t), MAX_CODE, &info);
	if (!err && delta)
		err = read_part(r, puc->p_abslineinfo, puc->p_sizeabslineinfo,
				sizeof(struct abs_line_info), MAX_CODE, &abs);
	if (err)
		return err;
	p->has_lines = info.count && head_ptr(r, puc->p_lineinfo);
	p->nlines = info.have < p->sizecode ? info.have : p->sizecode;
	if (!p->nlines)
		return 0;
	p->lines = calloc(p->nlines, sizeof(*p->lines));
	if (!p->lines)
		return -ENOMEM;
	if (delta)
		lines_delta(p, &info, &abs);
	else
		lines_plain(p, &info);
	if (!lines_are_own(p)) {
		p->nlines = 0; /* unknown */
		p->complete = false;
	}
	return 0;
}

static bool may_be_constant(const uint8_t *tv)
{
	switch (tv[PUC_TV_TT] & TT_BASIC) {
	case LUA_TNIL:
	case LUA_TBOOLEAN:
	case LUA_TNUMBER:
	case LUA_TSTRING:
		return true;
	default:
		return false;
	}
}

static int read_constants(struct proto_reader *r)
{
	struct part part __cleanup(free_part) = {0};
	struct puc_proto *p = r->p;
	uint32_t i;
	int err = read_part(r, r->puc->p_k, r->puc->p_sizek, PUC_TV_SIZE, MAX_K, &part);

	if (err || !part.have)
		return err;
	p->k = calloc(part.have, sizeof(*p->k));
	if (!p->k)
		return -ENOMEM;
	p->nk = part.have;
	for (i = 0; i < p->nk && !err; i++) {
		const uint8_t *tv = part.bytes + (size_t)i * PUC_TV_SIZE;

		err = gather(r, &part, PUC_TV_SIZE, string_constant, i);
		if (!may_be_constant(tv))
			p->misfit = "layout-constants";
		if ((tv[PUC_TV_TT] & TT_BASIC) == LUA_TNUMBER)
			p->k[i].number = first_word(tv + PUC_TV_VALUE);
		p->k[i].is_str = (tv[PUC_TV_TT] & TT_BASIC) == LUA_TSTRING;
		if (p->k[i].is_str)
			p->k[i].str = read_name(r, first_word(tv + PUC_TV_VALUE));
	}
	return err;
}

static int read_upvals(struct proto_reader *r)
{
	struct part part __cleanup(free_part) = {0};
	struct puc_proto *p = r->p;
	uint32_t i;
	int err = read_part(r, r->puc->p_upvalues, r->puc->p_sizeupvalues, r->puc->upvaldesc_size,
			    MAX_UPVALS, &part);

	if (err || !part.have)
		return err;
	p->upvals = calloc(part.have, sizeof(*p->upvals));
	if (!p->upvals)
		return -ENOMEM;
	p->nupvals = part.have;
	for (i = 0; i < p->nupvals && !err; i++) {
		uint64_t ref = first_word(part.bytes + (size_t)i * r->puc->upvaldesc_size);

		err = gather(r, &part, r->puc->upvaldesc_size, first_word, i);
		p->upvals[i].name = ref ? read_name(r, ref) : "?";
	}
	return err;
}

static int read_locals(struct proto_reader *r)
{
	struct part part __cleanup(free_part) = {0};
	struct puc_proto *p = r->p;
	uint32_t i;
	int err = read_part(r, r->puc->p_locvars, r->puc->p_sizelocvars, sizeof(struct loc_var),
			    MAX_LOCALS, &part);

	if (err)
		return err;
	p->locals_cut = part.have < part.count;
	if (!part.have)
		return 0;
	p->locals = calloc(part.have, sizeof(*p->locals));
	if (!p->locals)
		return -ENOMEM;
	p->nlocals = part.have;
	for (i = 0; i < p->nlocals && !err; i++) {
		struct loc_var v;

		memcpy(&v, part.bytes + i * sizeof(v), sizeof(v));
		err = gather(r, &part, sizeof(v), first_word, i);
		p->locals[i].name = read_name(r, v.varname);
		p->locals[i].startpc = (uint32_t)v.startpc;
		p->locals[i].endpc = (uint32_t)v.endpc;
	}
	return err;
}

/* lobject.h of 5.1: `lu_byte nups; lu_byte numparams;` */
static uint64_t nups_of(const struct proto_reader *r, const struct puc_child *child)
{
	return child->proto + r->puc->p_numparams - sizeof(uint8_t);
}

static int gather_nups(struct proto_reader *r, uint32_t i)
{
	const struct puc_proto *p = r->p;
	uint32_t n;

	for (n = 0; n < MEM_GATHER_MAX && i + n < p->nchildren; n++)
		if (foreign_plausible(p->children[i + n].proto))
			mem_gather_want(&r->near, nups_of(r, &p->children[i + n]));
	return mem_gather_read(&r->near);
}

static int read_nups(struct proto_reader *r)
{
	struct puc_proto *p = r->p;
	uint32_t i;
	int err = 0;

	for (i = 0; i < p->nchildren && !err; i++) {
		struct puc_child *child = &p->children[i];
		uint8_t nups;

		if (i % MEM_GATHER_MAX == 0)
			err = gather_nups(r, i);
		if (!foreign_plausible(child->proto) ||
		    mem_read(&r->near.mem, &nups, sizeof(nups), nups_of(r, child))) {
			child->nups = -1;
			p->complete = false;
		} else {
			child->nups = nups;
		}
	}
	return err;
}

static int read_children(struct proto_reader *r)
{
	struct part part __cleanup(free_part) = {0};
	struct puc_proto *p = r->p;
	uint32_t i;
	int err = read_part(r, r->puc->p_p, r->puc->p_sizep, sizeof(uint64_t), MAX_CHILDREN, &part);

	if (err || !part.have)
		return err;
	p->children = calloc(part.have, sizeof(*p->children));
	if (!p->children)
		return -ENOMEM;
	p->nchildren = part.have;
	for (i = 0; i < p->nchildren; i++)
		p->children[i].proto = first_word(part.bytes + i * sizeof(uint64_t));
	return r->puc->version == 51 ? read_nups(r) : 0;
}

/* funcinfo() of ldebug.c names a stripped chunk "=?". */
static int read_chunkname(struct proto_reader *r)
{
	uint64_t ref = head_ptr(r, r->puc->p_source);
	char text[PROTO_MAX_CHUNKNAME + 1] = PROTO_NO_CHUNK;
	struct puc_proto *p = r->p;
	bool cut = false;
	int err;

	p->chunklen = strlen(text);
	if (ref) {
		err = puc_str_read(r->mem, r->puc, ref, text, PROTO_MAX_CHUNKNAME, &p->chunklen,
				   &cut);
		if (err == -EBADMSG)
			p->misfit = "layout-source";
		else if (err)
			return err;
	}
	if (cut || p->misfit)
		p->complete = false;
	return proto_text_dup(text, p->chunklen, &p->chunkname);
}

static bool check_head(const struct proto_reader *r)
{
	const struct puc_layout *puc = r->puc;
	const uint16_t sizes[] = {puc->p_sizecode, puc->p_sizelineinfo, puc->p_sizek,
				  puc->p_sizep,	   puc->p_sizelocvars,	puc->p_sizeupvalues};
	size_t i;

	if ((lb_byte(r->head, PUC_GC_TT) & PUC_TT_MASK) != puc->tt_proto)
		return false;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (head_size(r, sizes[i]) > INT32_MAX)
			return false;
	return head_size(r, puc->p_sizecode) && address(head_ptr(r, puc->p_code));
}

/* As puc_fp_more() of unwind/puc/func.h. */
static uint64_t fp_constants(const struct proto_reader *r, uint64_t fp)
{
	uint8_t k[PUC_TV_SIZE * PUC_FP_KS], str[PUC_FP_STR];
	uint32_t n = head_size(r, r->puc->p_sizek);
	uint64_t addr = head_ptr(r, r->puc->p_k);
	__u64 first;

	if (n > PUC_FP_KS)
		n = PUC_FP_KS;
	if (!n || !foreign_plausible(addr) || mem_read(r->mem, k, PUC_TV_SIZE * n, addr))
		return fp;
	fp = puc_fp_k(fp, k, n, r->puc, &first);
	if (!foreign_plausible(first) || mem_read(r->mem, str, sizeof(str), first))
		return fp;
	return puc_fp_str(fp, str);
}

/* As puc_fp_children() of unwind/puc/func.h. */
static uint64_t fp_children(const struct proto_reader *r, uint64_t fp, const struct puc_fp_head *h)
{
	uint32_t n = h->sizep < PUC_FP_PS ? h->sizep : PUC_FP_PS;
	uint8_t p[8 * PUC_FP_PS];

	if (!n || !foreign_plausible(h->p) || mem_read(r->mem, p, 8 * n, h->p))
		return fp;
	return puc_fp_p(fp, p, n);
}

/* As puc_name_fp() of unwind/puc/func.h. */
static uint64_t fp_name(const struct proto_reader *r, uint64_t fp, const uint8_t *head)
{
	uint64_t name = foreign_word(head, r->puc->p_source);
	uint8_t str[PUC_FP_NAME];

	if (!foreign_plausible(name) || mem_read(r->mem, str, sizeof(str), name))
		return fp;
	return lb_fp_word(fp, PUC_FP_FACTOR_NAME, puc_fp_name(str, r->puc));
}

static uint32_t fingerprint(const struct proto_reader *r, const uint8_t *head)
{
	struct puc_fp_head h;
	uint64_t hash = fp_name(r, puc_fp_head(head, r->puc, &h), head);

	return lb_fp_end(fp_children(r, fp_constants(r, hash), &h));
}

/*
 * Checks invariants of all prototypes, also of stripped ones. In a VM with other structs most
 * prototypes violate one.
 */
static void check_sense(const struct proto_reader *r)
{
	uint32_t sizelineinfo = head_size(r, r->puc->p_sizelineinfo);
	struct puc_proto *p = r->p;

	if (p->linedefined < 0 || p->lastlinedefined < p->linedefined ||
	    (!p->linedefined && p->lastlinedefined)) /* a main chunk's are 0 and 0 */
		p->misfit = "layout-lines";
	else if (sizelineinfo && sizelineinfo != p->sizecode)
		p->misfit = "layout-lineinfo";
	else if (p->ncode == p->sizecode && puc_proto_ins(p, p->ncode - 1).op != PUC_BC_RETURN)
		p->misfit = "layout-code";
}

/* Compares the fingerprint again: the target runs meanwhile. -EAGAIN: it is another prototype. */
static int check_again(const struct proto_reader *r)
{
	uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8))) = {0};
	int err = mem_read(r->mem, head, r->puc->p_size, r->p->addr);

	if (err)
		return err;
	return fingerprint(r, head) == r->p->fingerprint ? 0 : -EAGAIN;
}

static int read_all(struct proto_reader *r)
{
	static int (*const parts[])(struct proto_reader *) = {
		read_chunkname, read_code,   read_lines,    read_constants,
		read_upvals,	read_locals, read_children,
	};
	struct puc_proto *p = r->p;
	size_t i;
	int err;

	p->fingerprint = fingerprint(r, r->head);
	p->version = r->puc->version;
	p->order = r->puc->flags & PUC_ORDER;
	p->linedefined = (int32_t)head_size(r, r->puc->p_linedefined);
	p->lastlinedefined = (int32_t)head_size(r, r->puc->p_lastlinedefined);
	p->sizecode = head_size(r, r->puc->p_sizecode);
	p->numparams = lb_byte(r->head, r->puc->p_numparams);
	p->complete = true;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		err = parts[i](r);
		if (err)
			return err;
	}
	check_sense(r);
	return check_again(r);
}

int puc_proto_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t addr,
		   struct puc_proto **out)
{
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;
	struct proto_reader *r __cleanup(reader_free) = NULL;
	int err;

	if (!foreign_plausible(addr))
		return -EBADMSG;
	r = calloc(1, sizeof(*r));
	p = calloc(1, sizeof(*p));
	if (!r || !p)
		return -ENOMEM;
	r->mem = mem;
	r->puc = puc;
	r->p = p;
	mem_gather_init(&r->near, mem);
	err = mem_read(mem, r->head, puc->p_size, addr);
	if (err)
		return err;
	if (!check_head(r))
		return -EBADMSG;
	p->addr = addr;
	err = read_all(r);
	if (err)
		return err;
	*out = TAKE_PTR(p);
	return 0;
}

void puc_proto_free(struct puc_proto **p)
{
	if (!*p)
		return;
	proto_texts_clear(&(*p)->names);
	free((*p)->code);
	free((*p)->lines);
	free((*p)->k);
	free((*p)->upvals);
	free((*p)->locals);
	free((*p)->children);
	free((*p)->chunkname);
	free(*p);
	*p = NULL;
}

/* Hashes an unknown string as a value that no string has. */
static uint64_t hash_str(uint64_t h, const char *str)
{
	return str ? proto_hash_str(h, str) : proto_hash_bytes(h, "\0", 2);
}

uint64_t puc_proto_hash(const struct puc_proto *p)
{
	uint64_t h = PROTO_HASH_START;
	uint32_t i;

	h = proto_hash_bytes(h, &p->linedefined, sizeof(p->linedefined));
	h = proto_hash_bytes(h, &p->lastlinedefined, sizeof(p->lastlinedefined));
	h = proto_hash_bytes(h, &p->sizecode, sizeof(p->sizecode));
	h = proto_hash_bytes(h, p->chunkname, p->chunklen + 1);
	h = proto_hash_bytes(h, p->code, p->ncode * sizeof(*p->code));
	h = proto_hash_bytes(h, p->lines, p->nlines * sizeof(*p->lines));
	for (i = 0; i < p->nk; i++)
		if (p->k[i].is_str)
			h = hash_str(h, p->k[i].str);
	for (i = 0; i < p->nupvals; i++)
		h = hash_str(h, p->upvals[i].name);
	for (i = 0; i < p->nlocals; i++) {
		h = hash_str(h, p->locals[i].name);
		h = proto_hash_bytes(h, &p->locals[i].startpc, sizeof(p->locals[i].startpc));
		h = proto_hash_bytes(h, &p->locals[i].endpc, sizeof(p->locals[i].endpc));
	}
	for (i = 0; i < p->nchildren; i++)
		h = proto_hash_bytes(h, &p->children[i].proto, sizeof(p->children[i].proto));
	return h;
}

uint32_t puc_proto_fingerprint(const struct puc_proto *p)
{
	return p->fingerprint;
}

const char *puc_proto_misfit(const struct puc_proto *p)
{
	return p->misfit;
}

bool puc_proto_complete(const struct puc_proto *p)
{
	return p->complete;
}

uint64_t puc_proto_addr(const struct puc_proto *p)
{
	return p->addr;
}

uint32_t puc_proto_sizecode(const struct puc_proto *p)
{
	return p->sizecode;
}

int32_t puc_proto_firstline(const struct puc_proto *p)
{
	return p->linedefined;
}

int32_t puc_proto_lastline(const struct puc_proto *p)
{
	return p->lastlinedefined;
}

bool puc_proto_stripped(const struct puc_proto *p)
{
	return !p->has_lines;
}

const char *puc_proto_chunkname(const struct puc_proto *p, size_t *len)
{
	if (len)
		*len = p->chunklen;
	return p->chunkname;
}

uint32_t puc_proto_shape(const struct puc_proto *p)
{
	const uint32_t parts[] = {p->sizecode, (uint32_t)p->lastlinedefined, p->numparams};

	return (uint32_t)proto_hash_bytes(PROTO_HASH_START, parts, sizeof(parts));
}

uint32_t puc_proto_contents(const struct puc_proto *p)
{
	const uint32_t sizes[] = {puc_proto_shape(p), p->nupvals, p->nchildren};
	uint64_t h = proto_hash_bytes(PROTO_HASH_START, sizes, sizeof(sizes));
	uint32_t i;

	h = proto_hash_bytes(h, p->code, p->ncode * sizeof(*p->code));
	for (i = 0; i < p->nk; i++) {
		h = proto_hash_bytes(h, &p->k[i].number, sizeof(p->k[i].number));
		if (p->k[i].is_str)
			h = hash_str(h, p->k[i].str);
	}
	return (uint32_t)h;
}

uint32_t puc_proto_child(const struct puc_proto *p, uint64_t child)
{
	uint32_t i;

	for (i = 0; i < p->nchildren; i++)
		if (p->children[i].proto == child)
			return i + 1;
	return 0;
}

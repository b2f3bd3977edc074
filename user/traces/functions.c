// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions that traces and starts are in. A start is known by the address of an instruction
 * alone. Its prototype begins before that: the search looks for the head of a prototype whose
 * bytecode contains the address, backwards from there, in blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "lua/foreign.h"
#include "lua/lj/bc.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "reader.h"

#define BLOCK 4096
#define REACH (256u << 10) /* bytes of a function's bytecode: 65,536 instructions */
#define HEADS_MOST 64	   /* heads that are looked into for one address */
#define FUNCTIONS_MOST 65536

static void function_free(struct traces_function *f)
{
	struct traces_function *before;

	for (; f; f = before) {
		before = f->before;
		lj_proto_free(&f->pt);
		free(f);
	}
}

void traces_functions_free(struct traces_reader *rd)
{
	struct traces_function *f, *tmp;

	HASH_ITER (hh, rd->functions, f, tmp) {
		HASH_DEL(rd->functions, f);
		function_free(f);
	}
}

/* The same function as before: only its code may have been patched since. */
static bool refresh(struct traces_function *f, const struct lj_proto *p)
{
	if (lj_proto_fingerprint(f->pt) != lj_proto_fingerprint(p) || f->pt->size != p->size)
		return false;
	memcpy(f->pt->bytes, p->bytes, p->size);
	return true;
}

/* Adds a copy, in place of f's, which is kept for what refers to it. */
static int add_function(struct traces_reader *rd, struct traces_function *f, struct lj_proto **p)
{
	struct traces_function *new;

	if (rd->nfunctions == FUNCTIONS_MOST)
		return -ENOBUFS;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	rd->nfunctions++;
	new->addr = (*p)->addr;
	new->reading = rd->reading;
	if (f)
		HASH_DEL(rd->functions, f);
	new->before = f;
	HASH_ADD(hh, rd->functions, addr, sizeof(new->addr), new);
	if (!new->hh.tbl) {
		function_free(new);
		return -ENOMEM;
	}
	new->pt = TAKE_PTR(*p);
	return 0;
}

int traces_function_at(struct traces_reader *rd, uint64_t addr, const struct lj_proto **out)
{
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;
	struct traces_function *f;
	int r;

	HASH_FIND(hh, rd->functions, &addr, sizeof(addr), f);
	if (f && f->reading == rd->reading) {
		*out = f->pt;
		return 0;
	}
	r = lj_proto_read(rd->mem, rd->lj, addr, &p);
	if (!r && !p->complete)
		r = -EFAULT;
	if (r)
		return r;
	if (f && refresh(f, p)) {
		f->reading = rd->reading;
		*out = f->pt;
		return 0;
	}
	*out = p;
	return add_function(rd, f, &p);
}

int traces_family_at(struct traces_reader *rd, uint64_t addr)
{
	const struct lj_proto *pt, *child;
	struct traces_function *f;
	int r = traces_function_at(rd, addr, &pt);

	if (r)
		return r;
	HASH_FIND(hh, rd->functions, &addr, sizeof(addr), f);
	if (f->family == rd->reading)
		return 0;
	f->family = rd->reading;
	for (uint32_t i = 0; i < pt->nkgc && !r; i++)
		if (pt->kgc[i].gct == LJ_GCT_PROTO)
			r = traces_function_at(rd, pt->kgc[i].ref, &child) == -ENOMEM ? -ENOMEM : 0;
	return r;
}

const struct lj_proto *traces_function_read(const struct traces_reader *rd, uint64_t addr)
{
	struct traces_function *f;

	HASH_FIND(hh, rd->functions, &addr, sizeof(addr), f);
	return f ? f->pt : NULL;
}

static bool has_pc(const struct traces_reader *rd, uint64_t proto, uint32_t sizebc, uint64_t pc)
{
	uint64_t offset = pc - proto - LJ_OFF(rd->lj, PROTO_SIZE);

	return !(offset & 3) && offset / 4 < sizebc;
}

/* True for a head, at the start of the bytes, of a prototype at addr that has this instruction. */
static bool is_head(const struct traces_reader *rd, const uint8_t *bytes, uint64_t addr,
		    uint64_t pc)
{
	const struct lj_layout *lj = rd->lj;
	uint32_t code = LJ_OFF(lj, PROTO_SIZE), op = bytes[code];

	/* 2.0's function headers are the same eight */
	return bytes[LJ_OFF(lj, PROTO_GCT)] == LJ_GCT_PROTO && op >= lj->bc_funcf &&
	       op < (uint32_t)lj->bc_funcf + LJ_FUNCC &&
	       has_pc(rd, addr, foreign_half(bytes, LJ_OFF(lj, PROTO_SIZEBC)), pc);
}

static int place_in(struct traces_reader *rd, uint64_t proto, uint64_t pc, struct traces_place *out)
{
	const struct lj_proto *pt;
	int r = traces_function_at(rd, proto, &pt);

	if (r)
		return r;
	if (!has_pc(rd, proto, pt->sizebc, pc))
		return -ENOENT;
	out->pt = pt;
	out->bcpos = (uint32_t)((pc - proto - LJ_OFF(rd->lj, PROTO_SIZE)) / 4);
	out->line = lj_proto_line(pt, out->bcpos);
	return 0;
}

/* Searches the heads that begin in [start, start + BLOCK), the last first. */
static int search_block(struct traces_reader *rd, const uint8_t *bytes, uint64_t start, uint64_t pc,
			unsigned int *heads, struct traces_place *out)
{
	int at, r;

	for (at = BLOCK - 8; at >= 0; at -= 8) {
		if (start + (unsigned int)at >= pc || !is_head(rd, bytes + at, start + at, pc))
			continue;
		if (!--*heads)
			return -ENOENT;
		r = place_in(rd, start + at, pc, out);
		if (r != -EBADMSG && r != -ENOENT && r != -EFAULT)
			return r;
	}
	return -EAGAIN;
}

static int search_back(struct traces_reader *rd, uint64_t pc, struct traces_place *out)
{
	uint32_t code = LJ_OFF(rd->lj, PROTO_SIZE), done;
	uint8_t bytes[BLOCK + LJ_PROTO_SIZE + 8] = {};
	unsigned int heads = HEADS_MOST;
	uint64_t start = pc & ~(uint64_t)(BLOCK - 1);
	int r;

	for (done = 0; done <= REACH; done += BLOCK, start -= BLOCK) {
		/* the rest of a head that begins at the end of this block is in the next */
		memmove(bytes + BLOCK, bytes, code + 8);
		if (mem_read(rd->mem, bytes, BLOCK, start))
			return -ENOENT;
		if (!done)
			memset(bytes + BLOCK, 0, code + 8);
		r = search_block(rd, bytes, start, pc, &heads, out);
		if (r != -EAGAIN)
			return r;
	}
	return -ENOENT;
}

int traces_place_of(struct traces_reader *rd, uint64_t pc, uint64_t hint, struct traces_place *out)
{
	int r = -ENOENT;

	if (pc & 3 || pc >> 47 || !pc)
		return -ENOENT;
	if (hint)
		r = place_in(rd, hint, pc, out);
	if (r == -ENOENT)
		r = search_back(rd, pc, out);
	return r;
}

int traces_add_lines(struct traces_lines **lines, size_t *n, const struct lj_proto *pt,
		     int32_t from, int32_t to)
{
	size_t i;

	for (i = 0; i < *n && (*lines)[i].pt != pt; i++)
		;
	if (i == *n) {
		if (array_grow(lines, *n, sizeof(**lines)))
			return -ENOMEM;
		(*lines)[(*n)++] = (struct traces_lines){pt, from, to};
	}
	if (from < (*lines)[i].from)
		(*lines)[i].from = from;
	if (to > (*lines)[i].to)
		(*lines)[i].to = to;
	return 0;
}

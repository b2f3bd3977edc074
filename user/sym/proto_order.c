// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parser, and the reader of bytecode, make a chunk's prototypes one after the other, with tables
 * and strings between them:
 *
 *     PUC     closure, main, first, second, child of second        oldest first
 *     LuaJIT  first, child of second, second, main, closure
 *
 * All that is older than the chunk lies behind a closure, as whatever keeps a prototype alive is one
 * that was made after it. A function that ends above the line ends the search, too: those before it
 * did so as well, but for the ones around both, which are on the line themselves or begin above it.
 */
#include "family.h"
#include "lua/proto_text.h"
#include "proto_order.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define PAGE 4096
#define PAGES 8
#define MOST_READS 512
#define ATTEMPTS 3 /* the target sweeps its list meanwhile */

/* Most neighbours in the list are neighbours in memory. */
struct pages {
	struct lb_mem mem;
	const struct lb_mem *under;
	uint32_t reads;
	uint64_t addr[PAGES]; /* 0: empty */
	uint8_t bytes[PAGES][PAGE];
};

static int read_page(struct pages *p, uint64_t page, const uint8_t **bytes)
{
	uint32_t slot = page / PAGE % PAGES;
	int err;

	*bytes = p->bytes[slot];
	if (p->addr[slot] == page)
		return 0;
	if (p->reads++ >= MOST_READS)
		return -E2BIG;
	p->addr[slot] = 0;
	err = mem_read(p->under, p->bytes[slot], PAGE, page);
	if (!err)
		p->addr[slot] = page;
	return err;
}

static int pages_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct pages *p = (struct pages *)mem;
	uint8_t *to = dst;

	while (size) {
		uint32_t at = addr % PAGE, n = PAGE - at < size ? PAGE - at : size;
		const uint8_t *bytes;
		int err = read_page(p, addr - at, &bytes);

		if (err) /* a test's memory has no pages */
			return err == -E2BIG ? err : mem_read(p->under, to, size, addr);
		memcpy(to, bytes + at, n);
		to += n;
		addr += n;
		size -= n;
	}
	return 0;
}

struct order_search {
	struct pages pages;
	const struct lb_build *build;
	const struct sym_family *family;
	const struct proto *proto;
	struct sym_object own;
	bool nameless, any_chunk;
};

static bool has_no_chunk(const struct sym_family *family, const struct proto *p)
{
	return !strcmp(family->chunkname(p, NULL), PROTO_NO_CHUNK);
}

bool proto_is_nameless(const struct sym_family *family, const struct proto *p)
{
	return has_no_chunk(family, p) || (!family->firstline(p) && !family->is_main(p));
}

static bool is_equal(const struct sym_family *family, const struct proto *a, const struct proto *b)
{
	return family->contents(a) == family->contents(b);
}

static bool has_same_chunk(const struct sym_family *family, const struct proto *a,
			   const struct proto *b)
{
	return !strcmp(family->chunkname(a, NULL), family->chunkname(b, NULL));
}

static bool compare(const struct order_search *s, uint64_t addr,
		    bool (*same)(const struct sym_family *family, const struct proto *a,
				 const struct proto *b))
{
	struct proto *other = NULL;
	bool r;

	if (s->family->read(&s->pages.mem, s->build, addr, &other))
		return false;
	r = same(s->family, s->proto, other);
	s->family->free(&other);
	return r;
}

static bool is_like(const struct order_search *s, uint64_t addr, const struct sym_object *o)
{
	if (o->firstline != s->own.firstline)
		return false;
	return !s->nameless || (o->lastline == s->own.lastline && o->size == s->own.size &&
				compare(s, addr, is_equal));
}

/* 5.2 reads a long name anew for each function of a dump. */
static bool is_of_chunk(const struct order_search *s, uint64_t addr, const struct sym_object *o)
{
	return o->chunk == s->own.chunk || (!s->any_chunk && compare(s, addr, has_same_chunk));
}

/*
 * A list that changes while it is read, or a hostile one, may be a circle within the pages that are
 * cached, of which no read comes that counts. Brent's algorithm: each object is compared with one
 * that was saved after 1, 2, 4, ... steps.
 */
struct circle {
	uint64_t saved;
	uint32_t steps, limit;
};

static bool is_circle(struct circle *c, uint64_t addr)
{
	if (addr == c->saved)
		return true;
	if (c->steps++ == c->limit) {
		c->saved = addr;
		c->steps = 0;
		c->limit = 2 * c->limit + 1;
	}
	return false;
}

/* -errno: the list could not be followed to where the search ends; *n is what there was up to
 * there. */
static int count(struct order_search *s, uint64_t addr, uint32_t *n)
{
	struct circle circle = {.saved = addr};
	struct sym_object o;
	bool mine;
	int err;

	*n = 0;
	memset(s->pages.addr, 0, sizeof(s->pages.addr));
	err = s->family->object(&s->pages.mem, s->build, addr, &s->own);
	if (err)
		return err;
	for (addr = s->own.next; addr; addr = o.next) {
		if (is_circle(&circle, addr))
			return -ELOOP;
		err = s->family->object(&s->pages.mem, s->build, addr, &o);
		if (err)
			return err;
		if (o.kind == SYM_OBJECT_CLOSURE && !s->any_chunk)
			break;
		if (o.kind != SYM_OBJECT_PROTO)
			continue;
		mine = is_of_chunk(s, addr, &o);
		if (!s->any_chunk && (o.lastline < s->own.firstline || !mine))
			break;
		*n += mine && is_like(s, addr, &o);
	}
	return 0;
}

uint32_t proto_order(const struct lb_mem *mem, const struct lb_build *build, const struct proto *p,
		     uint64_t addr)
{
	const struct sym_family *family = sym_family(build->family);
	struct order_search s;
	uint32_t n = 0;
	int i;

	/* a main function is alone, and so is, by its library, LuaJIT's built-in bytecode */
	if (family->firstline(p) < 0 || (family->is_main(p) && !proto_is_nameless(family, p)))
		return 0;
	s.pages.mem = (struct lb_mem){.read = pages_read, .uncached = mem->uncached};
	s.pages.under = mem;
	s.pages.reads = 0;
	s.build = build;
	s.family = family;
	s.proto = p;
	s.nameless = proto_is_nameless(family, p);
	s.any_chunk = has_no_chunk(family, p);
	for (i = 0; i < ATTEMPTS && count(&s, addr, &n); i++)
		;
	return n;
}

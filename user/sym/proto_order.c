// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parser, and the reader of bytecode, make a chunk's prototypes one after the other, with tables
 * and strings between them:
 *
 *     PUC     closure, main, first, second, child of second        oldest first
 *     LuaJIT  first, child of second, second, main, closure
 *
 * All that is older than the chunk lies behind a closure, as whatever keeps a prototype alive is one
 * that was made after it. But a trace keeps prototypes alive without closures, and the collector may have freed these and
 * not yet the prototypes. So what cannot have been made before, in this chunk, ends the search, too: in PUC a function
 * that begins below the line, in LuaJIT one that ends below this one; and a main function, which is in PUC the chunk's
 * own, in LuaJIT that of an older one. A function that ends above the line ends the search: those before it did so as
 * well, but for the ones around both, which are on the line themselves or begin above it.
 */
#include "family.h"
#include "lua/proto_text.h"
#include "proto_order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define PAGES 8
#define MOST_READS 512
#define ATTEMPTS 4 /* the target sweeps its list meanwhile */

/* Prototypes that are read whole: a minified file has thousands of functions on one line. */
#define MOST_TWINS 256

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
	bool by_contents; /* proto_has_contents() */
};

static bool has_no_chunk(const struct sym_family *family, const struct proto *p)
{
	return !strcmp(family->chunkname(p, NULL), PROTO_NO_CHUNK);
}

bool proto_is_nameless(const struct sym_family *family, const struct proto *p)
{
	return has_no_chunk(family, p) || (!family->firstline(p) && !family->is_main(p));
}

bool proto_has_contents(const struct sym_family *family, const struct proto *p)
{
	return *family->chunkname(p, NULL) == '@' && family->complete(p);
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

/* True if another prototype of the line may have the same contents. */
static bool is_alike(const struct order_search *s, const struct sym_object *o)
{
	return (s->nameless || s->by_contents) && o->lastline == s->own.lastline &&
	       o->size == s->own.size;
}

/* True if an older object of the list is no function that the chunk's parser made before this one. */
static bool is_of_older_chunk(const struct order_search *s, const struct sym_object *o)
{
	if (s->any_chunk || !s->own.firstline) /* stripped: it has no lines */
		return false;
	return !o->firstline || (s->build->family == LB_FAMILY_PUC ? o->firstline > s->own.firstline
								   : o->lastline > s->own.lastline);
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

/* The prototypes that a search came by. Other objects between them come and go. */
struct passed {
	uint32_t line, twins; /* of the same line; of these with the same contents */
	uint32_t alike;	      /* that were read for that */
	uint64_t hash;
};

/* Returns 0, -E2BIG if its bound ended the search before, or -errno: the list could not be followed. */
static int count(struct order_search *s, uint64_t addr, struct passed *passed)
{
	struct circle circle = {.saved = addr};
	struct sym_object o;
	bool mine;
	int err;

	*passed = (struct passed){0};
	s->pages.reads = 0;
	memset(s->pages.addr, 0, sizeof(s->pages.addr));
	err = s->family->object(&s->pages.mem, s->build, addr, &s->own);
	if (err)
		return err;
	if (s->own.kind != SYM_OBJECT_PROTO)
		return -ESTALE;
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
		if (is_of_older_chunk(s, &o))
			break;
		mine = is_of_chunk(s, addr, &o);
		passed->hash = (passed->hash ^ addr) * UINT64_C(0x9e3779b97f4a7c15);
		if (!s->any_chunk && (o.lastline < s->own.firstline || !mine))
			break;
		if (!mine || o.firstline != s->own.firstline)
			continue;
		passed->line++;
		if (!is_alike(s, &o))
			continue;
		if (passed->alike++ == MOST_TWINS)
			return -E2BIG;
		passed->twins += compare(s, addr, is_equal);
	}
	return 0;
}

static bool is_there(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		     uint32_t fp)
{
	const struct sym_family *family = sym_family(build->family);
	struct proto *live = NULL;
	bool r;

	if (family->read(mem, build, addr, &live))
		return false;
	r = family->fingerprint(live) == fp;
	family->free(&live);
	return r;
}

/*
 * The target runs meanwhile, and may close the VM: then the list leads through freed memory, and on into
 * another VM's. So two searches that find some have to come by the same prototypes, and behind them the first one still
 * has to be there.
 */
static int count_twice(struct order_search *s, uint64_t addr, uint32_t fp, struct passed *passed)
{
	struct passed before = {0}, now;
	int i, err, err_before = -ESTALE;

	for (i = 0; i < ATTEMPTS; i++) {
		err = count(s, addr, &now);
		if ((!err && !now.line) ||
		    (err == err_before && now.line == before.line && now.twins == before.twins &&
		     now.hash == before.hash && (!err || err == -E2BIG))) {
			*passed = now;
			return is_there(s->pages.under, s->build, addr, fp) ? 0 : -ESTALE;
		}
		before = now;
		err_before = err;
	}
	return -ESTALE;
}

bool proto_order(const struct lb_mem *mem, const struct lb_build *build, const struct proto *p,
		 uint64_t addr, uint32_t fp, struct proto_order *out)
{
	const struct sym_family *family = sym_family(build->family);
	struct passed passed = {0};
	struct order_search s;

	*out = (struct proto_order){0};
	/* a main function is alone, and so is, by its library, LuaJIT's built-in bytecode */
	if (family->firstline(p) < 0 || (family->is_main(p) && !proto_is_nameless(family, p)))
		return true;
	s.pages.mem = (struct lb_mem){.read = pages_read, .uncached = mem->uncached};
	s.pages.under = mem;
	s.build = build;
	s.family = family;
	s.proto = p;
	s.nameless = proto_is_nameless(family, p);
	s.any_chunk = has_no_chunk(family, p);
	s.by_contents = proto_has_contents(family, p);
	if (count_twice(&s, addr, fp, &passed))
		return false;
	out->order = s.nameless || s.by_contents ? passed.twins : passed.line;
	out->place = s.nameless ? passed.twins : passed.line;
	return true;
}

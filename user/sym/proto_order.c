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

#include "base/hash.h"

#define PAGE 4096
#define PAGES 8
#define MOST_READS 512
#define ATTEMPTS 4 /* the target sweeps its list meanwhile */

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
	uint32_t like;
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
		passed->like += mine && is_like(s, addr, &o);
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
static int count_twice(struct order_search *s, uint64_t addr, uint32_t fp, uint32_t *order)
{
	struct passed before = {0}, now;
	int i, err, err_before = -ESTALE;

	for (i = 0; i < ATTEMPTS; i++) {
		err = count(s, addr, &now);
		if (!err && !now.like) {
			*order = 0;
			return 0;
		}
		if (err == err_before && now.like == before.like && now.hash == before.hash &&
		    (!err || err == -E2BIG)) {
			*order = now.like;
			return is_there(s->pages.under, s->build, addr, fp) ? 0 : -ESTALE;
		}
		before = now;
		err_before = err;
	}
	return -ESTALE;
}

static int search(const struct lb_mem *mem, const struct lb_build *build, const struct proto *p,
		  uint64_t addr, uint32_t fp, uint32_t *order)
{
	const struct sym_family *family = sym_family(build->family);
	struct order_search s;

	s.pages.mem = (struct lb_mem){.read = pages_read, .uncached = mem->uncached};
	s.pages.under = mem;
	s.build = build;
	s.family = family;
	s.proto = p;
	s.nameless = proto_is_nameless(family, p);
	s.any_chunk = has_no_chunk(family, p);
	return count_twice(&s, addr, fp, order);
}

#define ORDERS_MAX 65536

/* The functions with these contents, in all VMs. */
struct known_order {
	struct {
		uint32_t contents, firstline;
	} key;
	uint32_t order; /* of the first one */
	bool found;	/* that was found */
	bool several;	/* others have another one: their contents do not distinguish them */
	UT_hash_handle hh;
};

void proto_orders_free(struct known_order **orders)
{
	struct known_order *o, *next;

	HASH_ITER (hh, *orders, o, next) {
		HASH_DEL(*orders, o);
		free(o);
	}
}

/* Returns the entry of the functions with p's contents: is_new: it was added. NULL: no memory. */
static struct known_order *entry_of(struct known_order **orders, const struct sym_family *family,
				    const struct proto *p, bool *is_new)
{
	struct known_order *o, probe = {.key = {.contents = family->contents(p),
						.firstline = (uint32_t)family->firstline(p)}};

	HASH_FIND(hh, *orders, &probe.key, sizeof(probe.key), o);
	*is_new = !o;
	if (o)
		return o;
	if (HASH_COUNT(*orders) >= ORDERS_MAX)
		proto_orders_free(orders);
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->key.contents = probe.key.contents;
	o->key.firstline = probe.key.firstline;
	HASH_ADD(hh, *orders, key, sizeof(o->key), o);
	if (o->hh.tbl)
		return o;
	free(o);
	return NULL;
}

uint32_t proto_order(struct known_order **orders, const struct lb_mem *mem,
		     const struct lb_build *build, const struct proto *p, uint64_t addr,
		     uint32_t fp)
{
	const struct sym_family *family = sym_family(build->family);
	struct known_order *known = NULL;
	uint32_t order = 0;
	bool found, is_new = false;

	/* a main function is alone, and so is, by its library, LuaJIT's built-in bytecode */
	if (family->firstline(p) < 0 || (family->is_main(p) && !proto_is_nameless(family, p)))
		return 0;
	found = !search(mem, build, p, addr, fp, &order);
	if (family->complete(p))
		known = entry_of(orders, family, p, &is_new);
	if (!known)
		return found ? order : 0;
	if (is_new) {
		known->found = found;
		known->order = found ? order : 0;
	}
	if (!known->found) /* one function is one row: as the first, also where it is found now */
		return 0;
	known->several |= found && order != known->order;
	if (found)
		return order;
	return known->several ? 0 : known->order;
}

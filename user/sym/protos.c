// SPDX-License-Identifier: BSD-2-Clause
#include "protos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/hash.h"
#include "base/mem_image.h"
#include "base/mem_noted.h"
#include "prof/name.h"
#include "proto_order.h"
#include "votes.h"

/* A child prototype's name, by its parent's bytecode. */
struct definition {
	uint64_t child;
	char *name;
	UT_hash_handle hh;
};

/* A sampled prototype. */
struct known_proto {
	struct {
		uint64_t addr;
		uint32_t fp;
		uint32_t pad;
	} key;
	const struct lb_build *build;
	struct protos_entry entry; /* the result of protos_get() */
	uint64_t hash;
	struct definition *definitions; /* of its children */
	struct mem_extent *extents;	/* memory that it was read from in the live process */
	size_t nextents;
	struct known_proto *next; /* in protos.recent */
	bool recent;		  /* is in that list */
	uint32_t checked;	  /* round in which it was compared with the live process */
	uint32_t used;		  /* the last round in which it was sent or requested */
	uint32_t ambiguous_in;	  /* round whose samples may be of another one */
	uint32_t freed;		  /* round in which it was found freed; 0: it was not */
	bool shown;		  /* protos_get() has returned it: results may depend on it */
	bool defined;		  /* definitions are set */
	bool ordered;		  /* entry.order is set */
	bool hashed;		  /* entry.contents is set */
	bool voted;
	bool evicted;	/* entry.proto was freed, and is read again when it is asked for */
	bool ambiguous; /* two different prototypes had this address and fingerprint */
	UT_hash_handle hh;
};

struct protos {
	const struct lb_mem *mem;   /* of the live process */
	struct known_proto *recent; /* those compared in the last rounds */
	struct mem_gather near;	    /* their memory, as it was at the round's begin */
	uint32_t gathered;	    /* that round */
	uint64_t gathered_ns;	    /* time of that reading */
	void (*changed)(void *arg);
	void *arg;
	struct known_proto *known;
	struct votes *votes;
	uint32_t addr_reused; /* round in which an address was found reused; 0: none was */
	uint32_t newest;      /* the last round with a new prototype; 0: none */
	uint32_t samples;     /* since then */
	bool shared;	      /* BPF was allowed to compute fingerprints once an epoch */
	bool ended;	      /* the image has ended */
	/* rounds [open, left] left a backlog, which the next one reads */
	uint32_t backlog_from, backlog_to;
};

/* Rounds after which BPF computes all fingerprints again, and its earlier records are read. */
#define REUSE_ROUNDS 2
/*
 * A process is steady after so many rounds and samples without a new prototype or a freed one: then
 * BPF computes a fingerprint once an epoch. A program that keeps loading and dropping code is never
 * steady, however little CPU time it gets, and loses no samples.
 */
#define STEADY_ROUNDS 4
#define STEADY_SAMPLES 512

int protos_new(const struct lb_mem *mem, void (*changed)(void *arg), void *arg, struct protos **out)
{
	struct protos *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->mem = mem;
	mem_gather_init(&p->near, mem);
	p->changed = changed;
	p->arg = arg;
	*out = p;
	return 0;
}

static void drop_names(struct known_proto *k)
{
	struct definition *d, *tmp;

	HASH_ITER (hh, k->definitions, d, tmp) {
		HASH_DEL(k->definitions, d);
		free(d->name);
		free(d);
	}
	k->defined = false;
	free(k->entry.kept_as);
	k->entry.kept_as = NULL;
}

void protos_clear(struct protos *p)
{
	struct known_proto *k, *tmp;

	p->recent = NULL;
	HASH_ITER (hh, p->known, k, tmp) {
		HASH_DEL(p->known, k);
		drop_names(k);
		k->entry.family->free(&k->entry.proto);
		free(k->extents);
		free(k);
	}
}

/* Its hash stays: another prototype that has its address and fingerprint by then is noticed. */
static void evict(struct known_proto *k)
{
	drop_names(k);
	k->ordered = k->hashed = false;
	k->entry.family->free(&k->entry.proto);
	free(k->extents);
	k->extents = NULL;
	k->nextents = 0;
	k->evicted = true;
}

void protos_evict(struct protos *p, uint32_t round, protos_evicted_fn *fn, void *arg)
{
	struct known_proto *k;

	for (k = p->known; k; k = k->hh.next) {
		if (!k->entry.proto || (int32_t)(k->used - round) >= 0)
			continue;
		evict(k);
		fn(arg, k->key.addr);
	}
}

size_t protos_kept(const struct protos *p)
{
	const struct known_proto *k;
	size_t n = 0;

	for (k = p->known; k; k = k->hh.next)
		n += k->entry.proto != NULL;
	return n;
}

void protos_free(struct protos **protos)
{
	if (!*protos)
		return;
	protos_clear(*protos);
	votes_free(&(*protos)->votes);
	mem_gather_clear(&(*protos)->near);
	free(*protos);
	*protos = NULL;
}

size_t protos_count(const struct protos *p)
{
	return HASH_COUNT(p->known);
}

static struct known_proto *find_known(struct protos *p, uint64_t addr, uint32_t fp)
{
	struct known_proto *k, probe = {.key = {.addr = addr, .fp = fp}};

	HASH_FIND(hh, p->known, &probe.key, sizeof(probe.key), k);
	return k;
}

static void note_reuse(struct protos *p, uint32_t round)
{
	if (!p->addr_reused)
		p->addr_reused = round;
}

/* True if a sample of this round may have the fingerprint of an earlier sample of its epoch. */
static bool may_be_of_epoch(const struct protos *p, uint32_t round)
{
	return p->shared && (!p->addr_reused || round - p->addr_reused <= REUSE_ROUNDS);
}

static struct known_proto *add_known(struct protos *p, const struct lb_build *build, uint64_t addr,
				     uint32_t fp)
{
	struct known_proto *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->build = build;
	k->entry.family = sym_family(build->family);
	k->key.addr = addr;
	k->key.fp = fp;
	HASH_ADD(hh, p->known, key, sizeof(k->key), k);
	if (!k->hh.tbl) {
		free(k);
		return NULL;
	}
	return k;
}

const char *protos_misfit(const struct protos *p, const struct lb_build *build)
{
	return votes_misfit(p->votes, build);
}

/* Each prototype votes once: if it is complete, or contradicts the layout. */
static void vote(struct protos *p, struct known_proto *k)
{
	const char *misfit = family_misfit(k->entry.family, k->entry.proto);

	if (k->voted || (!misfit && !k->entry.family->complete(k->entry.proto)))
		return;
	k->voted = true;
	if (votes_add(&p->votes, k->build, misfit))
		p->changed(p->arg);
}

static void replace_proto(struct protos *p, struct known_proto *k, struct proto *proto)
{
	if (k->shown && !k->evicted)
		p->changed(p->arg);
	k->evicted = false;
	drop_names(k);
	k->ordered = k->hashed = false;
	k->entry.family->free(&k->entry.proto);
	k->entry.proto = proto;
	k->hash = k->entry.family->hash(proto);
	vote(p, k);
}

static int define(void *arg, uint64_t child, const char *name)
{
	struct known_proto *parent = arg;
	struct definition *d, *old;

	HASH_FIND(hh, parent->definitions, &child, sizeof(child), old);
	if (old) /* the first name is kept */
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->child = child;
	d->name = strdup(name);
	if (d->name)
		HASH_ADD(hh, parent->definitions, child, sizeof(d->child), d);
	if (!d->name || !d->hh.tbl) {
		free(d->name);
		free(d);
		return -ENOMEM;
	}
	return 0;
}

static void learn_definitions(struct known_proto *k)
{
	if (k->defined || !k->entry.proto)
		return;
	k->defined = true;
	k->entry.family->definitions(k->entry.proto, define, k);
}

static void learn_order(struct protos *p, struct known_proto *k)
{
	struct proto_order order;

	if (k->ordered || !k->entry.proto)
		return;
	k->ordered = true;
	if (p->ended ||
	    !proto_order(p->mem, k->build, k->entry.proto, k->key.addr, k->key.fp, &order))
		order.order = order.place = PROF_NO_ORDER;
	k->entry.order = order.order;
	k->entry.place = order.place;
}

static void learn_contents(struct known_proto *k)
{
	const struct sym_family *family = k->entry.family;
	const struct proto *proto = k->entry.proto;

	if (k->hashed || !proto)
		return;
	k->hashed = true;
	k->entry.contents = 0;
	if (!proto_has_contents(family, proto))
		return;
	k->entry.contents = family->contents(proto);
	if (!k->entry.contents)
		k->entry.contents = 1;
}

/* Reads a prototype from the bytes that BPF sent. */
static int read_sent(const struct lb_rec_proto *rec, const struct lb_build *build,
		     struct proto **out)
{
	const char *end = (const char *)rec + rec->head.size;
	const struct lb_part *part = (const void *)(rec + 1);
	struct mem_image image;
	int r = 0;

	mem_image_init(&image);
	for (; (const char *)part < end && !r; part = lb_next_part(part))
		r = mem_image_add(&image, part->addr, part + 1, part->len);
	if (!r)
		r = sym_family(build->family)->read(&image.mem, build, rec->proto, out);
	mem_image_clear(&image);
	return r;
}

static bool are_same(const struct sym_family *family, const struct proto *known,
		     const struct proto *p)
{
	return family->same && family->complete(known) && family->same(known, p);
}

/*
 * Reads it from a live process's memory, if it is still the one that BPF saw. -ESTALE: another is
 * at its address. -EBADMSG: it was freed: the bytes are no prototype, or an incomplete one, or the
 * rest of the known one (NULL: none is known).
 */
static int read_live(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		     uint32_t fp, const struct proto *known, struct proto **out)
{
	const struct sym_family *family = sym_family(build->family);
	struct proto *live = NULL;
	int r = family->read(mem, build, addr, &live);

	if (r)
		return r;
	if (family->fingerprint(live) != fp) {
		r = family_misfit(family, live) || !family->complete(live) ||
				    (known && are_same(family, known, live))
			    ? -EBADMSG
			    : -ESTALE;
		family->free(&live);
		return r;
	}
	*out = live;
	return 0;
}

int protos_put(struct protos *p, const struct lb_rec_proto *rec, const struct lb_build *build,
	       uint32_t round)
{
	const struct sym_family *family = sym_family(build->family);
	struct proto *proto = NULL, *live = NULL;
	struct known_proto *k;
	int r;

	r = read_sent(rec, build, &proto);
	if (r == -ENOMEM)
		return r;
	if (!r && family->complete(proto) && family->fingerprint(proto) != rec->fp)
		family->free(&proto);
	/* parts too large to send are read now; if that fails, the sent parts are used */
	if ((!proto || !family->complete(proto)) &&
	    !read_live(p->mem, build, rec->proto, rec->fp, NULL, &live)) {
		family->free(&proto);
		proto = live;
	}
	if (!proto)
		return 0;
	k = find_known(p, rec->proto, rec->fp);
	if (!k)
		k = add_known(p, build, rec->proto, rec->fp);
	if (!k) {
		family->free(&proto);
		return -ENOMEM;
	}
	k->used = round;
	if (!k->entry.proto || k->hash != family->hash(proto)) {
		k->ambiguous |= k->entry.proto && family->complete(k->entry.proto);
		if (k->ambiguous)
			note_reuse(p, round);
		replace_proto(p, k, proto);
	} else {
		family->free(&proto);
	}
	learn_definitions(k);
	return 0;
}

/* Reads k from the live process, and records the memory that it was read from. */
static int read_known(struct known_proto *k, const struct lb_mem *mem, struct proto **live)
{
	struct mem_noted noted;
	int r;

	mem_noted_init(&noted, mem);
	r = read_live(&noted.mem, k->build, k->key.addr, k->key.fp, k->entry.proto, live);
	if (!r) {
		free(k->extents);
		k->nextents = noted.n;
		k->extents = TAKE_PTR(noted.extent);
	}
	mem_noted_clear(&noted);
	return r;
}

/* Rounds for which a prototype without samples is still gathered. */
#define RECENT 4
/* Age at which gathered bytes are no longer used: later samples may be of a later prototype. */
#define GATHERED_NS 5000000

/*
 * Reads the memory of all prototypes that this round is likely to compare, in a batch. Separately
 * each takes ten system calls, which is most of user space's work.
 */
static void gather_recent(struct protos *p, uint32_t round)
{
	struct known_proto *k, **at = &p->recent;
	size_t i;

	if (p->gathered == round)
		return;
	p->gathered = round;
	p->gathered_ns = clock_ns(CLOCK_MONOTONIC);
	while ((k = *at)) {
		if (round - k->checked > RECENT) {
			k->recent = false;
			*at = k->next;
			continue;
		}
		for (i = 0; i < k->nextents; i++)
			mem_gather_want_all(&p->near, k->extents[i].addr, k->extents[i].size);
		at = &k->next;
	}
	mem_gather_read(&p->near); /* the rest is read at its comparison */
}

static bool is_known(const struct known_proto *k, const struct proto *p)
{
	return k->hash == k->entry.family->hash(p) || are_same(k->entry.family, k->entry.proto, p);
}

/*
 * True if the gathered bytes agree with the known prototype. They are no atomic snapshot: they were
 * read one after the other while the process ran. But if all agree, each was unchanged when it was
 * read. So all were unchanged when the first was read, and in all samples before.
 */
static bool is_as_gathered(struct protos *p, struct known_proto *k, uint32_t round)
{
	struct proto *live = NULL;
	bool same;

	gather_recent(p, round);
	k->checked = round;
	if (!k->recent) {
		k->recent = true;
		k->next = p->recent;
		p->recent = k;
	}
	if (!k->entry.proto || !k->nextents ||
	    clock_ns(CLOCK_MONOTONIC) - p->gathered_ns > GATHERED_NS ||
	    read_known(k, &p->near.mem, &live))
		return false;
	same = k->entry.family->complete(live) && is_known(k, live);
	k->entry.family->free(&live);
	return same;
}

/*
 * It could not be read: another prototype is at its address (-ESTALE), or the process has ended
 * (-ESRCH), or it was freed. If its fingerprint may be an earlier sample's of the epoch, the
 * round's samples may be of the other one, or of one that was allocated and freed meanwhile. But
 * closing a VM frees all prototypes, and usually ends the process: PROTOS_WAIT waits for that.
 */
static void lose_known(struct protos *p, struct known_proto *k, int r, uint32_t round)
{
	if (r == -ESRCH) {
		k->freed = 0;
		return;
	}
	if (k->ambiguous || (r == -ESTALE && may_be_of_epoch(p, round)))
		k->ambiguous_in = round;
	else if (r != -ESTALE && !k->freed && may_be_of_epoch(p, round))
		k->freed = round;
	if (k->freed && round - k->freed == PROTOS_WAIT)
		k->ambiguous_in = round;
	note_reuse(p, round);
}

/*
 * Compares with the live process, once a round. If a different prototype is read, it replaces the
 * known one.
 *
 * The fingerprint by itself proves little (the ABA problem): chunks that are compiled from one
 * template, one after the other, have the same addresses and shapes. They may differ only in a
 * string far down the constant table, which has the string's address, also the same. If all content
 * that names and lines depend on, texts included, is the same at both ends of an interval, samples
 * between are of no other prototype. Only reading all of it proves that.
 */
static void check_known(struct protos *p, struct known_proto *k, uint32_t round)
{
	struct proto *live = NULL;
	int r;

	if (k->checked == round || p->ended)
		return;
	if (is_as_gathered(p, k, round))
		return;
	r = read_known(k, p->mem, &live);
	if (r) {
		lose_known(p, k, r, round);
		return;
	}
	if (!k->entry.proto) {
		if (k->evicted && k->hash != k->entry.family->hash(live)) {
			k->ambiguous_in = round;
			k->ambiguous = true;
			note_reuse(p, round);
		}
		replace_proto(p, k, live);
		return;
	}
	if (!k->entry.family->complete(live)) {
		/* the VM is being closed: its strings are freed, and the prototype will be. Or it
		 * was incomplete at the first reading, too */
		k->entry.family->free(&live);
		if (k->ambiguous)
			k->ambiguous_in = round;
		return;
	}
	if (!is_known(k, live)) {
		/* the VM may have been patching it: reads it again */
		k->entry.family->free(&live);
		if (read_known(k, p->mem, &live))
			return;
	}
	if (is_known(k, live)) {
		k->entry.family->free(&live);
		return;
	}
	if (k->entry.family->complete(k->entry.proto)) {
		k->ambiguous_in = round; /* the round's samples may be of either one */
		k->ambiguous = true;
		note_reuse(p, round);
	}
	replace_proto(p, k, live);
}

static bool is_ambiguous(const struct protos *p, const struct known_proto *k, uint32_t round)
{
	return k->ambiguous_in == round ||
	       (p->backlog_to && p->backlog_to + 1 == round && k->ambiguous_in >= p->backlog_from &&
		k->ambiguous_in <= p->backlog_to);
}

const struct protos_entry *protos_get(struct protos *p, const struct lb_build *build, uint64_t addr,
				      uint32_t fp, uint32_t round)
{
	struct known_proto *k = find_known(p, addr, fp);

	if (!k)
		k = add_known(p, build, addr, fp);
	if (!k)
		return NULL;
	k->used = round;
	if (!k->shown) {
		p->newest = round;
		p->samples = 0;
	}
	check_known(p, k, round);
	learn_definitions(k);
	learn_order(p, k);
	learn_contents(k);
	k->shown = true;
	k->entry.ambiguous = is_ambiguous(p, k, round);
	k->entry.waits = k->freed && round - k->freed < PROTOS_WAIT && !p->ended;
	return &k->entry;
}

void protos_left(struct protos *p, uint32_t round)
{
	if (p->backlog_to + 1 != round)
		p->backlog_from = round;
	p->backlog_to = round;
	if (p->addr_reused && may_be_of_epoch(p, round))
		p->addr_reused = round;
}

void protos_end(struct protos *p)
{
	p->ended = true;
}

void protos_sampled(struct protos *p, uint32_t count)
{
	p->samples += count < STEADY_SAMPLES - p->samples ? count : STEADY_SAMPLES - p->samples;
}

bool protos_share(struct protos *p, uint32_t round)
{
	if (p->newest && round - p->newest >= STEADY_ROUNDS && p->samples >= STEADY_SAMPLES &&
	    !p->addr_reused)
		p->shared = true;
	return p->shared && !p->addr_reused;
}

int protos_set_kept(struct protos *p, const struct protos_entry *entry, const char *name)
{
	struct known_proto *k = container_of(entry, struct known_proto, entry);
	struct proto *live = NULL;
	bool same;

	if (p->ended || !entry->proto || read_known(k, p->mem, &live))
		return -ESTALE;
	same = is_known(k, live);
	k->entry.family->free(&live);
	if (!same)
		return -ESTALE;
	free(k->entry.kept_as);
	k->entry.kept_as = strdup(name);
	return k->entry.kept_as ? 0 : -ENOMEM;
}

const char *protos_definition(const struct protos_entry *parent, uint64_t child)
{
	const struct known_proto *k = container_of(parent, struct known_proto, entry);
	const struct definition *d;

	HASH_FIND(hh, k->definitions, &child, sizeof(child), d);
	return d ? d->name : NULL;
}

bool protos_defines_another(const struct protos_entry *parent, uint64_t child, const char *name)
{
	const struct known_proto *k = container_of(parent, struct known_proto, entry);

	for (const struct definition *d = k->definitions; d; d = d->hh.next)
		if (d->child != child && name_ends_in(d->name, name))
			return true;
	return false;
}

// SPDX-License-Identifier: BSD-2-Clause
#include "protos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem_image.h"
#include "base/mem_noted.h"
#include "proto_order.h"
#include "votes.h"

/* A child prototype's name, where its parent's bytecode stores it. */
struct definition {
	uint64_t child;
	char *name;
	UT_hash_handle hh;
};

/* A prototype that samples showed. */
struct known_proto {
	struct {
		uint64_t addr;
		uint32_t fp;
		uint32_t pad;
	} key;
	const struct lb_build *build;
	struct protos_entry entry; /* what others see of it */
	uint64_t hash;
	struct definition *definitions; /* of its children */
	struct mem_extent *extents;	/* what it was read from in the live process */
	size_t nextents;
	struct known_proto *next; /* in protos.recent */
	bool recent;		  /* is in it */
	uint32_t checked;	  /* round in which it was compared with the live process */
	uint32_t ambiguous_in;	  /* round whose samples may be of another one */
	uint32_t freed;		  /* round in which it was found to be freed; 0: it was not */
	bool shown;		  /* others have seen it, and may have made something of it */
	bool defined;		  /* definitions are there */
	bool ordered;		  /* entry.order is */
	bool voted;
	bool ambiguous; /* has been two different ones: this address and fingerprint may be any's */
	UT_hash_handle hh;
};

struct protos {
	const struct lb_mem *mem;   /* of the live process */
	struct known_proto *recent; /* those that were looked at in the last rounds */
	struct mem_gather near;	    /* all that these consist of, as it was at the round's begin */
	uint32_t gathered;	    /* which round that is */
	uint64_t gathered_ns;	    /* when that was */
	void (*changed)(void *arg);
	void *arg;
	struct known_proto *known;
	struct votes *votes;
	uint32_t
		addr_reused; /* the round in which an address was found to be used again; 0: none was */
	uint32_t newest; /* the last round in which one was shown for the first time; 0: none was */
	uint32_t samples; /* since then */
	bool shared;	  /* BPF was allowed to make a fingerprint once in an epoch */
	bool ended;	  /* the image is no more */
	/* rounds [open, left] did not read all that was sent: the next one goes on with it */
	uint32_t open, left;
};

/* So many rounds later BPF has been made to prove all that it shows, and what it sent before is
 * read.
 */
#define REUSE_ROUNDS 2
/*
 * A process is steady when so many rounds and samples have shown no prototype for the first time,
 * and none was freed: then BPF makes a fingerprint once in an epoch. A program that loads code and
 * drops it all the time never is, however little of the CPU's time it gets, and loses nothing.
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

static void drop_definitions(struct known_proto *k)
{
	struct definition *d, *tmp;

	HASH_ITER (hh, k->definitions, d, tmp) {
		HASH_DEL(k->definitions, d);
		free(d->name);
		free(d);
	}
	k->defined = false;
}

void protos_clear(struct protos *p)
{
	struct known_proto *k, *tmp;

	p->recent = NULL;
	HASH_ITER (hh, p->known, k, tmp) {
		HASH_DEL(p->known, k);
		drop_definitions(k);
		k->entry.family->free(&k->entry.proto);
		free(k->extents);
		free(k);
	}
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

/* May a sample of this round show a fingerprint that an earlier sample of its epoch has made? */
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

/* Each votes once, when all of it is known or enough to decide. */
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
	if (k->shown)
		p->changed(p->arg);
	drop_definitions(k);
	k->ordered = false;
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
	if (old) /* of two names the first stands */
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
	if (k->ordered || !k->entry.proto || p->ended)
		return;
	k->ordered = true;
	k->entry.order = proto_order(p->mem, k->build, k->entry.proto, k->key.addr);
}

/* Reads a prototype out of the bytes that BPF shipped. */
static int read_shipped(const struct lb_rec_proto *rec, const struct lb_build *build,
			struct proto **out)
{
	struct mem_image image;
	uint32_t i;
	int r = 0;

	mem_image_init(&image);
	for (i = 0; i < rec->nparts && !r; i++)
		if (rec->part[i].len)
			r = mem_image_add(&image, rec->part[i].addr,
					  (const uint8_t *)rec + rec->part[i].at, rec->part[i].len);
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
 * Reads it out of a live process's memory, if it is still the one that BPF saw. -ESTALE: another is
 * there. -EBADMSG: it was freed: there is no prototype, nor one as a whole, or what is left of the
 * known one (NULL: none is known).
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

int protos_ship(struct protos *p, const struct lb_rec_proto *rec, const struct lb_build *build,
		uint32_t round)
{
	const struct sym_family *family = sym_family(build->family);
	struct proto *proto = NULL, *live = NULL;
	struct known_proto *k;
	int r;

	r = read_shipped(rec, build, &proto);
	if (r == -ENOMEM)
		return r;
	if (!r && family->complete(proto) && family->fingerprint(proto) != rec->fp)
		family->free(&proto);
	/* what was too large to ship is read now, and what was shipped kept when that is too late
	 */
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

/* Reads k out of the live process, and notes where it lies there. */
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

/* How many rounds a prototype that no sample shows is still gathered. */
#define RECENT 4
/* So long the bytes are used: a sample that was taken after them may show what came after them. */
#define GATHERED_NS 5000000

/*
 * Reads together what the prototypes consist of that are likely to be looked at in this round: by
 * itself each takes ten system calls, which is most of what user space does.
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
	mem_gather_read(&p->near); /* what it could not is read when it is looked at */
}

static bool is_known(const struct known_proto *k, const struct proto *p)
{
	return k->hash == k->entry.family->hash(p) || are_same(k->entry.family, k->entry.proto, p);
}

/*
 * Is it in the bytes that were gathered what it was? They were read one after the other, as the
 * process ran, and so may show what never was at any time. But when they say that nothing is
 * another, each was as it was known when it was read, and so was all of it when the first was; and
 * in all samples that were taken before.
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
 * It is not there any more: another prototype is (-ESTALE), or the process has ended (-ESRCH), or
 * it was freed. Its fingerprint may be that of an earlier sample in the epoch: then the round's
 * samples may be of the other one, or of one that was there and freed, too. But all prototypes are
 * freed when a VM is closed, and the process ends then, mostly: that is waited for.
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
 * Compares with the live process, once a round. What can be read and is another changes what is
 * known.
 *
 * The fingerprint proves little by itself: chunks that were compiled from one template, one after
 * the other, lie at the same addresses with the same shape, and may differ in a string far down the
 * table of constants only, of which there is the address, the same too. When all that names and
 * lines depend on, the texts included, is at the end of a stretch of time as it was at its start,
 * what was sampled in it belongs to no other prototype. Nothing less than reading all of it
 * shows that.
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
		replace_proto(p, k, live);
		return;
	}
	if (!k->entry.family->complete(live)) {
		/* the VM is being closed: its strings are gone, and the prototype will be. Or it is
		 * one that cannot be read as a whole: then that was so when it was learned, too.
		 */
		k->entry.family->free(&live);
		if (k->ambiguous)
			k->ambiguous_in = round;
		return;
	}
	if (!is_known(k, live)) {
		/* it may have been caught while the VM patched it: once more */
		k->entry.family->free(&live);
		if (read_known(k, p->mem, &live))
			return;
	}
	if (is_known(k, live)) {
		k->entry.family->free(&live);
		return;
	}
	if (k->entry.family->complete(k->entry.proto)) {
		k->ambiguous_in = round; /* which of the two did this round's samples show? */
		k->ambiguous = true;
		note_reuse(p, round);
	}
	replace_proto(p, k, live);
}

static bool is_doubtful(const struct protos *p, const struct known_proto *k, uint32_t round)
{
	return k->ambiguous_in == round ||
	       (p->left && p->left + 1 == round && k->ambiguous_in >= p->open &&
		k->ambiguous_in <= p->left);
}

const struct protos_entry *protos_get(struct protos *p, const struct lb_build *build, uint64_t addr,
				      uint32_t fp, uint32_t round)
{
	struct known_proto *k = find_known(p, addr, fp);

	if (!k)
		k = add_known(p, build, addr, fp);
	if (!k)
		return NULL;
	if (!k->shown) {
		p->newest = round;
		p->samples = 0;
	}
	check_known(p, k, round);
	learn_definitions(k);
	learn_order(p, k);
	k->shown = true;
	k->entry.doubtful = is_doubtful(p, k, round);
	k->entry.waits = k->freed && round - k->freed < PROTOS_WAIT && !p->ended;
	return &k->entry;
}

void protos_left(struct protos *p, uint32_t round)
{
	if (p->left + 1 != round)
		p->open = round;
	p->left = round;
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

const char *protos_definition(const struct protos_entry *parent, uint64_t child)
{
	const struct known_proto *k =
		(const struct known_proto *)((const char *)parent -
					     offsetof(struct known_proto, entry));
	const struct definition *d;

	HASH_FIND(hh, k->definitions, &child, sizeof(child), d);
	return d ? d->name : NULL;
}

// SPDX-License-Identifier: BSD-2-Clause
#include "alike.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define PLACES_MOST 2048
#define AGREE 2	     /* traces */
#define AGREE_MORE 4 /* for each that differs */
#define WAITING_MOST 64
#define GIVEN_MOST 8

struct place_key {
	uint32_t traceno, mcofs;
	uint32_t ids[ALIKE_FRAMES]; /* as many as there are */
};

struct known_place {
	struct place_key *key; /* owned, as the rest */
	struct alike_stack *exact;
	uint32_t trace_fp; /* of the last trace that was counted */
	uint32_t agree;	   /* with exact; 0: it is not set */
	uint32_t differ;
	struct alike_waiting *waiting;
	size_t nwaiting;
	uint32_t given; /* times, by alike_waiting_at() */
	UT_hash_handle hh;
};

struct alike {
	struct known_place *places;
	size_t waiting; /* places at which samples wait */
};

static void free_place(struct known_place *p)
{
	free(p->key);
	free(p->exact);
	free(p->waiting);
	free(p);
}

void alike_free(struct alike **alike)
{
	struct known_place *p, *next;

	if (!*alike)
		return;
	HASH_ITER (hh, (*alike)->places, p, next) {
		HASH_DEL((*alike)->places, p);
		free_place(p);
	}
	free(*alike);
	*alike = NULL;
}

/* Returns the key's size in bytes. */
static size_t set_key(const struct alike_place *place, struct place_key *key)
{
	size_t size = place->snapshot->n * sizeof(key->ids[0]);

	key->traceno = place->traceno;
	key->mcofs = place->mcofs;
	memcpy(key->ids, place->snapshot->ids, size);
	return offsetof(struct place_key, ids) + size;
}

static struct known_place *find(const struct alike *alike, const struct alike_place *place)
{
	struct known_place *p = NULL;
	struct place_key key;
	size_t size = set_key(place, &key);

	if (alike)
		HASH_FIND(hh, alike->places, &key, size, p);
	return p;
}

static struct known_place *new_place(const struct place_key *key, size_t size)
{
	struct known_place *p = calloc(1, sizeof(*p));

	if (p)
		p->key = malloc(size);
	if (p && p->key) {
		memcpy(p->key, key, size);
		return p;
	}
	free(p);
	return NULL;
}

static struct known_place *add(struct alike **alike, const struct alike_place *place)
{
	struct known_place *p;
	struct place_key key;
	size_t size = set_key(place, &key);

	if (*alike && HASH_COUNT((*alike)->places) >= PLACES_MOST)
		alike_free(alike);
	if (!*alike)
		*alike = calloc(1, sizeof(**alike));
	p = *alike ? new_place(&key, size) : NULL;
	if (!p)
		return NULL;
	HASH_ADD_KEYPTR(hh, (*alike)->places, p->key, size, p);
	if (p->hh.tbl)
		return p;
	free_place(p);
	return NULL;
}

static struct known_place *find_or_add(struct alike **alike, const struct alike_place *place)
{
	struct known_place *p = find(*alike, place);

	return p ? p : add(alike, place);
}

static bool set_exact(struct known_place *p, const struct alike_stack *exact)
{
	size_t size = offsetof(struct alike_stack, ids) + exact->n * sizeof(exact->ids[0]);
	struct alike_stack *copy = malloc(size);

	if (!copy)
		return false;
	memcpy(copy, exact, size);
	free(p->exact);
	p->exact = copy;
	return true;
}

void alike_learn(struct alike **alike, const struct alike_place *place, uint32_t trace_fp,
		 const struct alike_stack *exact,
		 bool (*same)(const void *arg, uint32_t a, uint32_t b), const void *arg)
{
	struct known_place *p = find_or_add(alike, place);
	uint32_t i;
	bool agrees;

	if (!p || (p->agree && p->trace_fp == trace_fp))
		return;
	agrees = !p->agree || p->exact->n == exact->n;
	for (i = 0; p->agree && agrees && i < exact->n; i++)
		agrees = same(arg, p->exact->ids[i], exact->ids[i]);
	p->trace_fp = trace_fp;
	if (!agrees && ++p->differ <= p->agree)
		return;
	if (!set_exact(p, exact))
		return;
	if (!agrees) { /* those before were the exception */
		p->differ = p->agree;
		p->agree = 0;
	}
	p->agree++;
}

const struct alike_stack *alike_find(const struct alike *alike, const struct alike_place *place)
{
	const struct known_place *p = find(alike, place);

	return p && p->agree >= AGREE + AGREE_MORE * p->differ ? p->exact : NULL;
}

void alike_wait(struct alike **alike, const struct alike_place *place, size_t row, uint64_t count)
{
	struct known_place *p = find_or_add(alike, place);
	size_t i;

	for (i = 0; p && i < p->nwaiting; i++) {
		if (p->waiting[i].row == row) {
			p->waiting[i].count += count;
			return;
		}
	}
	if (!p || p->nwaiting == WAITING_MOST ||
	    array_grow(&p->waiting, p->nwaiting, sizeof(*p->waiting)))
		return;
	(*alike)->waiting += !p->nwaiting;
	p->waiting[p->nwaiting++] = (struct alike_waiting){row, count};
}

bool alike_waits(const struct alike *alike)
{
	return alike && alike->waiting;
}

uint32_t alike_waiting_at(struct alike *alike, uint32_t traceno, uint32_t *mcofs, uint32_t n)
{
	struct known_place *p;
	uint32_t found = 0;

	for (p = alike->places; p && found < n; p = p->hh.next)
		if (p->key->traceno == traceno && p->nwaiting && p->given++ < GIVEN_MOST)
			mcofs[found++] = p->key->mcofs;
	return found;
}

size_t alike_take_waiting(struct alike *alike, const struct alike_place *place,
			  struct alike_waiting **out)
{
	struct known_place *p = find(alike, place);
	size_t n = p ? p->nwaiting : 0;

	*out = NULL;
	if (!n)
		return 0;
	*out = TAKE_PTR(p->waiting);
	p->nwaiting = 0;
	alike->waiting--;
	return n;
}

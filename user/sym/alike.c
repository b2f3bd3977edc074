// SPDX-License-Identifier: BSD-2-Clause
#include "alike.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define PLACES_MOST 4096
#define AGREE 2	     /* traces */
#define AGREE_MORE 4 /* for each that differs */
#define WAITING_MOST 64
#define GIVEN_MOST 8

struct known_place {
	struct alike_stack exact;
	uint32_t trace_fp; /* of the last trace that was counted */
	uint32_t agree;	   /* with exact; 0: it is not set */
	uint32_t differ;
	struct alike_waiting *waiting;
	size_t nwaiting;
	uint32_t given; /* times, by alike_waiting_at() */
	UT_hash_handle hh;
	uint32_t key_size;
	struct {
		uint32_t traceno, mcofs;
		uint32_t ids[ALIKE_FRAMES];
	} key;
};

struct alike {
	struct known_place *places;
};

void alike_free(struct alike **alike)
{
	struct known_place *p, *next;

	if (!*alike)
		return;
	HASH_ITER (hh, (*alike)->places, p, next) {
		HASH_DEL((*alike)->places, p);
		free(p->waiting);
		free(p);
	}
	free(*alike);
	*alike = NULL;
}

static struct known_place key_of(const struct alike_place *place)
{
	struct known_place probe = {.key = {.traceno = place->traceno, .mcofs = place->mcofs}};
	size_t size = place->snapshot->n * sizeof(probe.key.ids[0]);

	memcpy(probe.key.ids, place->snapshot->ids, size);
	probe.key_size = (uint32_t)(size + 2 * sizeof(uint32_t));
	return probe;
}

static struct known_place *find(const struct alike *alike, const struct known_place *probe)
{
	struct known_place *p;

	HASH_FIND(hh, alike->places, &probe->key, probe->key_size, p);
	return p;
}

static struct known_place *add(struct alike **alike, const struct known_place *probe)
{
	struct known_place *p;

	if (*alike && HASH_COUNT((*alike)->places) >= PLACES_MOST)
		alike_free(alike);
	if (!*alike)
		*alike = calloc(1, sizeof(**alike));
	p = *alike ? malloc(sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	*p = *probe;
	HASH_ADD(hh, (*alike)->places, key, p->key_size, p);
	if (p->hh.tbl)
		return p;
	free(p);
	return NULL;
}

static struct known_place *find_or_add(struct alike **alike, const struct alike_place *place)
{
	const struct known_place probe = key_of(place);
	struct known_place *p = *alike ? find(*alike, &probe) : NULL;

	return p ? p : add(alike, &probe);
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
	agrees = !p->agree || p->exact.n == exact->n;
	for (i = 0; p->agree && agrees && i < exact->n; i++)
		agrees = same(arg, p->exact.ids[i], exact->ids[i]);
	p->trace_fp = trace_fp;
	if (!agrees && ++p->differ <= p->agree)
		return;
	if (!agrees) { /* those before were the exception */
		p->differ = p->agree;
		p->agree = 0;
	}
	p->exact = *exact;
	p->agree++;
}

static struct known_place *find_place(const struct alike *alike, const struct alike_place *place)
{
	const struct known_place probe = key_of(place);

	return alike ? find(alike, &probe) : NULL;
}

const struct alike_stack *alike_find(const struct alike *alike, const struct alike_place *place)
{
	const struct known_place *p = find_place(alike, place);

	return p && p->agree >= AGREE + AGREE_MORE * p->differ ? &p->exact : NULL;
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
	p->waiting[p->nwaiting++] = (struct alike_waiting){row, count};
}

uint32_t alike_waiting_at(struct alike *alike, uint32_t traceno, uint32_t *mcofs, uint32_t n)
{
	struct known_place *p;
	uint32_t found = 0;

	for (p = alike->places; p && found < n; p = p->hh.next)
		if (p->key.traceno == traceno && p->nwaiting && p->given++ < GIVEN_MOST)
			mcofs[found++] = p->key.mcofs;
	return found;
}

size_t alike_take_waiting(struct alike *alike, const struct alike_place *place,
			  struct alike_waiting **out)
{
	struct known_place *p = find_place(alike, place);
	size_t n = p ? p->nwaiting : 0;

	*out = NULL;
	if (!p)
		return 0;
	*out = TAKE_PTR(p->waiting);
	p->nwaiting = 0;
	return n;
}

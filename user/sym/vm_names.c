// SPDX-License-Identifier: BSD-2-Clause
#include "vm_names.h"

#include <stdlib.h>

#include "base/hash.h"
#include "family.h"

struct vm_names {
	uint64_t g;
	const struct sym_family *family;
	struct names *names;
	uint32_t tried; /* round of the last attempt */
	uint32_t tries;
	UT_hash_handle hh;
};

#define VMS_MAX 64

/*
 * Rounds between two attempts to read a VM's names when one is missing, at most: modules come and
 * go. A program that begins loads its libraries now: the first attempts wait for one round only.
 */
#define NAMES_RETRY 20
#define NAMES_EAGER 4

void vm_names_free(struct vm_names **vms)
{
	struct vm_names *v, *next;

	HASH_ITER (hh, *vms, v, next) {
		HASH_DEL(*vms, v);
		v->family->names_free(&v->names);
		free(v);
	}
}

/* Some names are never found, as a function of a stripped host's: each attempt waits for longer. */
static uint32_t wait_of(const struct vm_names *v)
{
	if (v->tries <= NAMES_EAGER)
		return 1;
	return v->tries - NAMES_EAGER < NAMES_RETRY ? v->tries - NAMES_EAGER : NAMES_RETRY;
}

static struct vm_names *add(struct vm_names **vms, const struct sym_family *family, uint64_t g)
{
	struct vm_names *v;

	if (HASH_COUNT(*vms) >= VMS_MAX) /* they come and go */
		vm_names_free(vms);
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->g = g;
	v->family = family;
	HASH_ADD(hh, *vms, g, sizeof(v->g), v);
	if (v->hh.tbl)
		return v;
	free(v);
	return NULL;
}

static void read_names(struct vm_names *v, const struct lb_mem *mem, const struct lb_build *build,
		       uint32_t round)
{
	struct names *names = NULL;

	v->tried = round;
	v->tries++;
	if (v->family->names_read(mem, build, v->g, &names))
		return;
	v->family->names_free(&v->names);
	v->names = names;
}

const struct names *vm_names_get(struct vm_names **vms, const struct lb_mem *mem,
				 const struct lb_build *build, uint64_t g, bool again,
				 uint32_t round)
{
	const struct sym_family *family = sym_family(build->family);
	struct vm_names *v;

	HASH_FIND(hh, *vms, &g, sizeof(g), v);
	if (v && v->family != family) { /* another VM took its address */
		vm_names_free(vms);
		v = NULL;
	}
	if (!v) {
		v = add(vms, family, g);
		if (!v)
			return NULL;
		read_names(v, mem, build, round);
	} else if (again && round - v->tried >= wait_of(v)) {
		read_names(v, mem, build, round);
	}
	return v->names;
}

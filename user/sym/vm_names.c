// SPDX-License-Identifier: BSD-2-Clause
#include "vm_names.h"

#include <stdlib.h>
#include <sys/param.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem_pages.h"
#include "family.h"

#define MISSING 16

/* A function without a name. */
struct missing {
	uint64_t function;
	uint32_t tries; /* for it */
};

struct vm_names {
	uint64_t g;
	const struct sym_family *family;
	struct names *names;
	uint32_t tried; /* round of the last attempt */
	uint32_t tries;
	struct missing missing[MISSING]; /* the last ones */
	uint32_t nmissing;		 /* all that there were */
	UT_hash_handle hh;
};

#define VMS_MAX 64

/*
 * Rounds between two attempts to read a VM's names when one is missing, at most: modules come and
 * go. A program that begins loads its libraries now: the first attempts wait for one round only.
 * Some names are never found, as that of an interpreter's main function: each attempt for the same
 * function waits twice as long as the one before.
 */
#define NAMES_RETRY 20
#define NAMES_EAGER 4
#define NAMES_DOUBLED 10 /* times */

#define READINGS 3 /* after the first one */

void vm_names_free(struct vm_names **vms)
{
	struct vm_names *v, *next;

	HASH_ITER (hh, *vms, v, next) {
		HASH_DEL(*vms, v);
		v->family->names_free(&v->names);
		free(v);
	}
}

static struct missing *find_missing(struct vm_names *v, uint64_t function)
{
	struct missing *m = v->missing;

	while (m < v->missing + MISSING && m->function != function)
		m++;
	if (m < v->missing + MISSING)
		return m;
	m = &v->missing[v->nmissing++ % MISSING];
	*m = (struct missing){.function = function};
	return m;
}

static bool may_try_again(struct vm_names *v, uint64_t function, uint32_t round)
{
	struct missing *m = find_missing(v, function);
	uint32_t wait = v->tries <= NAMES_EAGER ? 1 : MIN(v->tries - NAMES_EAGER, NAMES_RETRY);

	if (round - v->tried < MAX(wait, 1u << MIN(m->tries, NAMES_DOUBLED)))
		return false;
	m->tries++;
	return true;
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

/* NULL: they cannot be read. */
static struct names *read_once(const struct vm_names *v, const struct lb_mem *mem,
			       const struct lb_build *build)
{
	struct mem_pages *pages __cleanup(mem_pages_free) = mem_pages_new(mem);
	struct names *names = NULL;

	if (!pages || v->family->names_read(&pages->mem, build, v->g, &names))
		return NULL;
	return names;
}

/*
 * The target runs meanwhile, and may close the VM: then what is read is freed memory, and another
 * VM's tables at the addresses of this one's. So two readings have to give the same names.
 */
static void read_names(struct vm_names *v, const struct lb_mem *mem, const struct lb_build *build,
		       uint32_t round)
{
	struct names *names = read_once(v, mem, build), *again;
	int i;

	v->tried = round;
	v->tries++;
	for (i = 0; names && i < READINGS; i++) {
		again = read_once(v, mem, build);
		if (again && v->family->names_same(names, again)) {
			v->family->names_free(&again);
			v->family->names_free(&v->names);
			v->names = names;
			return;
		}
		v->family->names_free(&names);
		names = again;
	}
	if (names)
		v->family->names_free(&names);
}

const struct names *vm_names_get(struct vm_names **vms, const struct lb_mem *mem,
				 const struct lb_build *build, uint64_t g, uint64_t missing,
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
	} else if (missing && may_try_again(v, missing, round)) {
		read_names(v, mem, build, round);
	}
	return v->names;
}

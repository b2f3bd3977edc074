// SPDX-License-Identifier: BSD-2-Clause
#include "kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem_pages.h"
#include "family.h"

/* Reads at once, and the rounds that give back one: a host that loads code all the time makes each
 * round ask. */
#define CREDIT 8
#define CREDIT_ROUNDS 4

struct kept_function {
	uint64_t proto;
	bool several; /* names */
	UT_hash_handle hh;
	char name[];
};

struct kept_functions {
	struct kept_function *functions;
	uint64_t g;
	uint32_t round; /* of the last attempt */
	int err;	/* of it */
	uint32_t spent; /* CREDIT_ROUNDS for each read of late */
};

static void forget(struct kept_functions *kept)
{
	struct kept_function *f, *next;

	HASH_ITER (hh, kept->functions, f, next) {
		HASH_DEL(kept->functions, f);
		free(f);
	}
}

void kept_free(struct kept_functions **kept)
{
	if (*kept)
		forget(*kept);
	free(*kept);
	*kept = NULL;
}

static int add(void *arg, uint64_t proto, const char *name)
{
	struct kept_functions *kept = arg;
	struct kept_function *f;
	size_t size = strlen(name) + 1;

	HASH_FIND(hh, kept->functions, &proto, sizeof(proto), f);
	if (f) {
		f->several |= strcmp(f->name, name) != 0;
		return 0;
	}
	f = calloc(1, sizeof(*f) + size);
	if (!f)
		return -ENOMEM;
	f->proto = proto;
	memcpy(f->name, name, size);
	HASH_ADD(hh, kept->functions, proto, sizeof(f->proto), f);
	if (f->hh.tbl)
		return 0;
	free(f);
	return -ENOMEM;
}

static bool may_read(struct kept_functions *kept, uint32_t round)
{
	uint32_t passed = round - kept->round;

	kept->spent -= passed < kept->spent ? passed : kept->spent;
	if (kept->spent + CREDIT_ROUNDS > CREDIT * CREDIT_ROUNDS)
		return false;
	kept->spent += CREDIT_ROUNDS;
	return true;
}

int kept_read(struct kept_functions **out, const struct lb_mem *mem, const struct lb_build *build,
	      uint64_t g, uint32_t round)
{
	struct mem_pages *pages __cleanup(mem_pages_free) = NULL;
	struct kept_functions *kept = *out;
	bool may;

	if (!kept)
		kept = *out = calloc(1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	if (kept->round == round && kept->g == g)
		return kept->err;
	may = may_read(kept, round);
	kept->round = round;
	kept->g = g;
	forget(kept);
	pages = mem_pages_new(mem);
	kept->err = !may    ? -EBUSY
		    : pages ? sym_family(build->family)->kept(&pages->mem, build, g, add, kept)
			    : -ENOMEM;
	if (kept->err)
		forget(kept);
	return kept->err;
}

const char *kept_name(const struct kept_functions *kept, uint64_t proto)
{
	struct kept_function *f;

	HASH_FIND(hh, kept->functions, &proto, sizeof(proto), f);
	return f && !f->several ? f->name : NULL;
}

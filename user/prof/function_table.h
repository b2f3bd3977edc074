/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of a profile while they are joined and named: function.c, function_vms.c. */
#ifndef PROF_FUNCTION_TABLE_H
#define PROF_FUNCTION_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "prof.h"

struct shared_source;

struct function {
	UT_hash_handle hh, by_base;
	struct prof_frame frame; /* the key: what its frames share */
	struct prof_frame base;	 /* the same without what only its parents on the stack show */
	const char *contents;	 /* the position by its contents, where its parents are not known */
	struct function *first;	 /* of this base: the rest up to `divided` is of all that have it */
	const char *defname, *position;
	bool defined,
		undefined; /* a definition is known of one, of one not: of a generated chunk */
	bool divided;	   /* they are several functions */
	uint32_t place;	   /* the highest of its frames; PROF_NO_ORDER */
	/* of those that differ in what they lack only, one that lacks nothing; there are several such */
	struct function *whole;
	bool wholes;
	bool may_be_several; /* it lacks what distinguishes these */
	uint64_t samples;
	bool doubtful; /* of those that differ in their order only, one has none; the most samples of one that has */
	uint64_t most;
	struct shared_source *source;
	const char *last_vm; /* that ran it, of the rows seen so far */
	uint32_t id;
	uint32_t same;	      /* the function that this is; id, unless more is known of that */
	char *location;	      /* chunk:line of all of its frames */
	const char *callname; /* of the first call */
	const char *own;      /* the name at a call that ends the definition's name */
	bool several;	      /* calls have different names */
	bool path;	      /* chunks of other functions end alike */
	bool shared;	      /* its stable name is another's, too */
	bool shares_location; /* its location is another's, too */
	uint8_t level;	      /* enum level */
};

struct functions {
	const struct prof *prof;
	struct function *table; /* by frame */
	struct function *bases; /* the first of each, by base */
	struct function **all;	/* by id */
	size_t n;
	uint32_t *of; /* id, by frame's id */
};

/* True for a known name. luaG_* writes "?" for an unknown one. */
static inline bool is_name(const char *name)
{
	return name && *name && strcmp(name, "?") != 0;
}

/* True if that says something else. */
static inline bool learn(const char **known, const char *said)
{
	bool other = *known && said && *known != said;

	if (said)
		*known = said;
	return other;
}

#endif

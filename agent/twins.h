/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that are defined on one line may have equal code: `local f, g = function() end, function() end`. Where
 * they are, in which prototypes, distinguishes them (hook_twin() in user/hook/abi.h). So when a prototype is met, those
 * that it holds are looked at.
 */
#ifndef AGENT_TWINS_H
#define AGENT_TWINS_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "map.h"

struct twins {
	bool works;	  /* prototypes have the layout that this module knows */
	struct map known; /* prototype: its number, unless that is 0 */
};

/*
 * Compares what the module knows of prototypes with the one of a chunk that it has loaded. chunk holds `first`, which
 * is defined in line 2, and `second`, in lines 3 and 4.
 */
void twins_check(struct twins *twins, bool luajit, uintptr_t chunk, uintptr_t first,
		 uintptr_t second);

/* Returns the number of this prototype, and finds those of the prototypes that it holds. */
uint32_t twins_meet(struct twins *twins, bool luajit, uintptr_t proto);

/* The memory at this address is freed. */
static inline void twins_forget(struct twins *twins, uintptr_t freed)
{
	struct map_entry *e =
		__builtin_expect(twins->known.n != 0, 0) ? map_find(&twins->known, freed) : NULL;

	if (e)
		map_remove(&twins->known, e);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua functions that a host keeps: in the registry under a string, as Redis does with its
 * scripts (f_<sha1>), or in a global variable. A function that C code calls has no name at its
 * call, and its parent is not on the stack: this is the only name that it has.
 */
#ifndef SYM_KEPT_H
#define SYM_KEPT_H

#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

/* Those of one VM, as they were in one round; NULL: none yet. */
struct kept_functions;

void kept_free(struct kept_functions **kept);

/*
 * Reads those of the VM at g, unless that was done in this round. Returns 0; -EBUSY: so many
 * reads that their cost would show; or -errno: they cannot be read.
 */
int kept_read(struct kept_functions **kept, const struct lb_mem *mem, const struct lb_build *build,
	      uint64_t g, uint32_t round);

/* Returns the only name of the functions of this prototype; NULL: there is none, or several. Valid
 * until the next kept_read(). */
const char *kept_name(const struct kept_functions *kept, uint64_t proto);

#endif

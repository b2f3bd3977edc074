/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several functions of a chunk may begin on one line, and stripped ones may have nothing that
 * distinguishes them. The VM keeps all objects in a list, newest first, which collecting does not reorder:
 * a prototype's place among its like in that list is the same in each run, and stays when the
 * chunk's main function, which knows them all, has been collected.
 */
#ifndef SYM_PROTO_ORDER_H
#define SYM_PROTO_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

#include "lua/family.h"

/* True if chunk and line do not identify it: it has no line, or its chunk no name. */
bool proto_is_nameless(const struct sym_family *family, const struct proto *p);

/* True if a hash of its contents identifies it, beside chunk and line: it is of a file, and was read whole. A chunk that its
 * host names, "=template", may have any number of texts: their sizes distinguish its functions. */
bool proto_has_contents(const struct sym_family *family, const struct proto *p);

/* How many prototypes the VM made before one, as far as a bounded part of its list shows: */
struct proto_order {
	uint32_t
		order; /* like it: of the same line as the chunk was compiled or loaded; where p is nameless or has
			 * contents, with the same contents; without a chunk's name, in any chunk */
	uint32_t
		place; /* of the same line, whatever their contents; of a nameless one the same as order */
};

/* Counts them for p, which is at addr and has this fingerprint. False: they cannot be counted, as the VM is closed
 * meanwhile. */
bool proto_order(const struct lb_mem *mem, const struct lb_build *build, const struct proto *p,
		 uint64_t addr, uint32_t fp, struct proto_order *out);

#endif

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

/* The orders that were found in a process, by contents; NULL: none. */
struct known_order;

void proto_orders_free(struct known_order **orders);

/*
 * How many functions like p, which is at addr and has this fingerprint, the VM made before it: of the same line as the
 * chunk was compiled or loaded; where p is nameless, of the same contents; without a chunk's name, in any chunk. As
 * far as a bounded part of the list shows. When the VM is closed meanwhile it cannot be counted: then all functions with p's contents have the
 * order of the first one of them, or 0 if that was not found, or others have another one.
 */
uint32_t proto_order(struct known_order **orders, const struct lb_mem *mem,
		     const struct lb_build *build, const struct proto *p, uint64_t addr,
		     uint32_t fp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A prototype of PUC Lua (Proto), copied out of a target: chunk, lines, names. Reading is done once
 * by puc_proto_read(); all else works on the copy, which stays valid when the target has collected
 * the prototype or is gone.
 *
 * A prototype may be known in part only: its parts are separate allocations, and BPF ships some of
 * them when it sees it for the first time, and the process may be gone since. The head and the
 * chunk's name are always there, lines and names as far as the bytes go.
 *
 * A pc is the index of an instruction: of the one that is being executed, in a caller the call.
 */
#ifndef LUA_PUC_PROTO_H
#define LUA_PUC_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/mem.h>

#include "lua/definition.h"

struct puc_proto;

/*
 * Reads the prototype at addr. -EBADMSG: these bytes are no prototype; -EAGAIN: it went away
 * meanwhile; -EFAULT and other errors of mem_read(): its head or chunk name cannot be read;
 * -ENOMEM.
 */
int puc_proto_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t addr,
		   struct puc_proto **out);
void puc_proto_free(struct puc_proto **p);

/* The fingerprint that BPF stamps on each frame (unwind/puc/fingerprint.h). */
uint32_t puc_proto_fingerprint(const struct puc_proto *p);

/* Hash of all content that lines and names depend on; of addresses the children's only, to which
 * definitions give names. */
uint64_t puc_proto_hash(const struct puc_proto *p);

/*
 * What of it cannot be so in any prototype of this layout, as a reason of losses (docs/stats.md);
 * NULL: nothing. Then it is none, or the layout is another. Where its chunk's name is no string, it
 * is called "=?".
 */
const char *puc_proto_misfit(const struct puc_proto *p);

bool puc_proto_complete(const struct puc_proto *p); /* false: some parts could not be read */
uint64_t puc_proto_addr(const struct puc_proto *p);
uint32_t puc_proto_sizecode(const struct puc_proto *p);
int32_t puc_proto_firstline(const struct puc_proto *p); /* linedefined; 0: a main chunk */
int32_t puc_proto_lastline(const struct puc_proto *p);
bool puc_proto_stripped(const struct puc_proto *p); /* no line information */

/* Hash of sizes that are the same in each process that loads the same code. */
uint32_t puc_proto_shape(const struct puc_proto *p);

/* Hash of the code, the constants and the sizes. */
uint32_t puc_proto_contents(const struct puc_proto *p);

/* The position of a child among p's children, from 1 on; 0: it is none. */
uint32_t puc_proto_child(const struct puc_proto *p, uint64_t child);

/* As the VM holds it ("@path", "=name" or source text; "=?" when stripped), cut after 8 KiB. May
 * hold NULs before len. */
const char *puc_proto_chunkname(const struct puc_proto *p, size_t *len);

/* Line of an instruction; 0: no line information; -1: not known, or none that the function can
 * have. */
int32_t puc_proto_line(const struct puc_proto *p, uint32_t pc);

/* What kind of name the VM derived. */
enum puc_namewhat {
	PUC_NAME_NONE = 0,
	PUC_NAME_LOCAL,
	PUC_NAME_GLOBAL,
	PUC_NAME_METHOD,
	PUC_NAME_FIELD,
	PUC_NAME_UPVALUE,
	PUC_NAME_METAMETHOD,
	PUC_NAME_CONSTANT,
	PUC_NAME_FOR_ITERATOR,
};

/*
 * The name of the function that the instruction at pc calls, as the version's own ldebug.c derives
 * it for debug.getinfo(..., "n"), except that metamethods are always "__index", "__lt", ... (5.4
 * writes "index"). That the call was a tail call, or none but a hook or a finalizer, is the
 * caller's to know. No name when it would take too long to find. It belongs to p, and is not set
 * with PUC_NAME_NONE.
 */
enum puc_namewhat puc_proto_callname(const struct puc_proto *p, uint32_t pc, const char **name);

/* True if that name, as puc_proto_callname() gave it, is p's own parameter. */
bool puc_proto_is_parameter(const struct puc_proto *p, const char *name);

/* "local", "global", ... as in debug.getinfo().namewhat; "" for PUC_NAME_NONE. */
const char *puc_namewhat_str(enum puc_namewhat what);

/* Calls fn for each definition (lua/definition.h). Returns 0, fn's value, or -ENOMEM. */
int puc_proto_definitions(const struct puc_proto *p, sym_definition_fn fn, void *arg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A prototype of PUC Lua (Proto), copied from a target: chunk, lines, names. puc_proto_read() reads
 * it once; all else works on the copy, which stays valid after the target has collected the
 * prototype or ended.
 *
 * The copy may be partial: a prototype's parts are separate allocations, BPF sends some of them
 * when it first samples it, and the process may have ended since. The head and the chunk's name are
 * always present, lines and names as far as the bytes go.
 *
 * A pc is the index of the running instruction, in a caller of its call.
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
 * Reads the prototype at addr. -EBADMSG: these bytes are no prototype; -EAGAIN: it was replaced
 * meanwhile; -EFAULT and other errors of mem_read(): its head or chunk name cannot be read;
 * -ENOMEM.
 */
int puc_proto_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t addr,
		   struct puc_proto **out);
void puc_proto_free(struct puc_proto **p);

/* The fingerprint that BPF stamps on each frame (unwind/puc/fingerprint.h). */
uint32_t puc_proto_fingerprint(const struct puc_proto *p);

/* Hash of all content that lines and names depend on. It has no addresses but the children's, which
 * definitions name. */
uint64_t puc_proto_hash(const struct puc_proto *p);

/*
 * Returns the part that contradicts this layout, as a reason of losses (docs/stats.md), or NULL. If
 * one does, it is no prototype, or the layout is another. If its chunk's name is no string, the
 * copy has "=?".
 */
const char *puc_proto_misfit(const struct puc_proto *p);

bool puc_proto_complete(const struct puc_proto *p); /* false: parts of it could not be read */
uint64_t puc_proto_addr(const struct puc_proto *p);
uint32_t puc_proto_sizecode(const struct puc_proto *p);
int32_t puc_proto_firstline(const struct puc_proto *p); /* linedefined; 0: a main chunk */
int32_t puc_proto_lastline(const struct puc_proto *p);
bool puc_proto_stripped(const struct puc_proto *p); /* no line information */

/* Hash of sizes that are the same in each process that loads the same code. */
uint32_t puc_proto_shape(const struct puc_proto *p);

/* Hash of the code, the constants and the sizes. */
uint32_t puc_proto_contents(const struct puc_proto *p);

/* Returns the position of a child among p's children, from 1 on; 0 if it is no child. */
uint32_t puc_proto_child(const struct puc_proto *p, uint64_t child);

/* Returns it as the VM stores it ("@path", "=name" or source text; "=?" if stripped), cut after
 * 8 KiB. May have NULs before len. */
const char *puc_proto_chunkname(const struct puc_proto *p, size_t *len);

/* Returns the line of an instruction; 0: no line information; -1: unknown, or outside the
 * function. */
int32_t puc_proto_line(const struct puc_proto *p, uint32_t pc);

/* Kinds of names that the VM derives. */
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
 * Returns the name of the function that the instruction at pc calls, as the version's own ldebug.c
 * derives it for debug.getinfo(..., "n"), except that metamethods are always "__index", "__lt", ...
 * (5.4 writes "index"). The caller has to exclude tail calls, hooks and finalizers. No name if the
 * search exceeds its budget. The name is p's, and not set with PUC_NAME_NONE.
 */
enum puc_namewhat puc_proto_callname(const struct puc_proto *p, uint32_t pc, const char **name);

/* True if that name, as puc_proto_callname() returned it, is p's own parameter. */
bool puc_proto_is_parameter(const struct puc_proto *p, const char *name);

/* "local", "global", ... as in debug.getinfo().namewhat; "" for PUC_NAME_NONE. */
const char *puc_namewhat_str(enum puc_namewhat what);

/* Calls fn for each definition (lua/definition.h). Returns 0, fn's value, or -ENOMEM. */
int puc_proto_definitions(const struct puc_proto *p, sym_definition_fn fn, void *arg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy of a LuaJIT prototype (GCproto): chunk, lines, names. lj_proto_read() reads it once; all
 * else works on the copy, which stays valid after the target has collected the prototype or has
 * exited.
 *
 * A copy may be partial (BPF sends a prototype's first bytes at its first sample, and the process
 * may have exited since): the head and the chunk's name are always there, lines and names as far as
 * the bytes go.
 */
#ifndef LUA_LJ_PROTO_H
#define LUA_LJ_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

#include "lua/definition.h"

struct lj_proto;

/* Reads the prototype at pt. -EBADMSG: these bytes are no prototype; -EAGAIN: it was collected
 * meanwhile; -EFAULT and other errors of mem_read(): its head or chunk name cannot be read;
 * -ENOMEM. */
int lj_proto_read(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t pt,
		  struct lj_proto **out);
void lj_proto_free(struct lj_proto **p);

/* Returns the fingerprint that BPF stamps on each frame (unwind/lj/fingerprint.h). A partial copy's
 * may differ. */
uint32_t lj_proto_fingerprint(const struct lj_proto *p);

/* Returns a hash of all content that lines and names depend on, without code that the VM
 * patches. */
uint64_t lj_proto_hash(const struct lj_proto *p);

/* True if these are copies of one prototype whose hashes differ. A collected prototype's memory
 * often stays intact, but for the allocator's links in the text of a string, and its size of the
 * free block in the last word: strings are compared by their numbers, and the last word is not. */
bool lj_proto_same(const struct lj_proto *a, const struct lj_proto *b);

bool lj_proto_complete(const struct lj_proto *p); /* false: some bytes could not be read */
uint32_t lj_proto_sizebc(const struct lj_proto *p);
int32_t lj_proto_firstline(const struct lj_proto *p); /* -1: bytecode of a built-in library */

/* True if it may be a chunk's main function: only these have no upvalues, but varargs alone. */
bool lj_proto_is_main(const struct lj_proto *p);

/* Returns a hash of sizes, equal in each process that loads the same code. */
uint32_t lj_proto_shape(const struct lj_proto *p);

/* Returns a hash of the code, the constants and the sizes, without code that the VM patches. */
uint32_t lj_proto_contents(const struct lj_proto *p);

/* Returns the position of a child among p's children, which a dump keeps, from 1 on; 0: it is
 * none. */
uint32_t lj_proto_child(const struct lj_proto *p, uint64_t child);

/* Returns the VM's chunk name ("@path", "=name" or source text), cut after 8 KiB. It may hold NULs
 * before len. */
const char *lj_proto_chunkname(const struct lj_proto *p, size_t *len);

/* Returns the line of a bytecode position as lj_debug_line(); 0: no line information; -1: not
 * known. */
int32_t lj_proto_line(const struct lj_proto *p, uint32_t bcpos);

/* The kinds of names that lj_debug_funcname() derives. */
enum lj_namewhat {
	LJ_NAME_NONE = 0,
	LJ_NAME_LOCAL,
	LJ_NAME_GLOBAL,
	LJ_NAME_METHOD,
	LJ_NAME_FIELD,
	LJ_NAME_UPVALUE,
	LJ_NAME_METAMETHOD,
};

/* Finds the name of the function that the instruction at bcpos calls, as lj_debug_funcname()
 * derives it (and with it jit.p and debug.getinfo(..., "n")); none when the search exceeds its
 * budget. The name belongs to p; it is not set with LJ_NAME_NONE. */
enum lj_namewhat lj_proto_callname(const struct lj_proto *p, uint32_t bcpos, const char **name);

/* True if that name, as lj_proto_callname() gave it, is p's own parameter. */
bool lj_proto_is_parameter(const struct lj_proto *p, const char *name);

/* Returns "local", "global", ... as in debug.getinfo().namewhat; "" for LJ_NAME_NONE. */
const char *lj_namewhat_str(enum lj_namewhat what);

/* Calls fn for each definition (lua/definition.h). Returns 0, fn's value, or -ENOMEM. */
int lj_proto_definitions(const struct lj_proto *p, sym_definition_fn fn, void *arg);

#endif

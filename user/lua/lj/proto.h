/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A LuaJIT prototype (GCproto), copied out of a target: chunk, lines, names. Reading is done once
 * by lj_proto_read(); all else works on the copy, which stays valid when the target has collected
 * the prototype or is gone.
 *
 * A prototype may be known in part only (BPF ships its first bytes when it is seen for the first
 * time, and the process may be gone since): the head and the chunk's name are always there, lines
 * and names as far as the bytes go.
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

/*
 * Reads the prototype at pt. -EBADMSG: these bytes are no prototype; -EAGAIN: it went away
 * meanwhile; -EFAULT and other errors of mem_read(): its head or chunk name cannot be read;
 * -ENOMEM.
 */
int lj_proto_read(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t pt,
		  struct lj_proto **out);
void lj_proto_free(struct lj_proto **p);

/* The fingerprint that BPF stamps on each frame (unwind/lj/fingerprint.h). Of a prototype that is known in part
 * only it may be another. */
uint32_t lj_proto_fingerprint(const struct lj_proto *p);

/* Hash of all content that lines and names depend on; not of what the VM patches as it runs. */
uint64_t lj_proto_hash(const struct lj_proto *p);

/*
 * Are these two copies of one prototype, although their hashes differ? The memory of a collected
 * one often stays as it was, but for the allocator's notes in the text of a string: then the
 * strings are told by their numbers to be the same.
 */
bool lj_proto_same(const struct lj_proto *a, const struct lj_proto *b);

bool lj_proto_complete(const struct lj_proto *p); /* false: some bytes could not be read */
uint32_t lj_proto_sizebc(const struct lj_proto *p);
int32_t lj_proto_firstline(const struct lj_proto *p); /* -1: bytecode of a built-in library */
bool lj_proto_stripped(const struct lj_proto *p);     /* no line information */

/* True if it may be a chunk's main function: only these have no upvalues, but varargs alone. */
bool lj_proto_is_main(const struct lj_proto *p);

/* Hash of sizes that are the same in each process that loads the same code. */
uint32_t lj_proto_shape(const struct lj_proto *p);

/* Hash of the code, the constants and the sizes, as far as the VM does not patch them. */
uint32_t lj_proto_contents(const struct lj_proto *p);

/* The position of a child among p's children, which a dump keeps, from 1 on; 0: it is none. */
uint32_t lj_proto_child(const struct lj_proto *p, uint64_t child);

/*
 * As the VM holds it ("@path", "=name" or source text), cut after 8 KiB. May hold NULs before len.
 */
const char *lj_proto_chunkname(const struct lj_proto *p, size_t *len);

/*
 * Line of a bytecode position as lj_debug_line() tells it; 0: no line information; -1: not known.
 */
int32_t lj_proto_line(const struct lj_proto *p, uint32_t bcpos);

/* What kind of name lj_debug_funcname() derived. */
enum lj_namewhat {
	LJ_NAME_NONE = 0,
	LJ_NAME_LOCAL,
	LJ_NAME_GLOBAL,
	LJ_NAME_METHOD,
	LJ_NAME_FIELD,
	LJ_NAME_UPVALUE,
	LJ_NAME_METAMETHOD,
};

/*
 * The name of the function that the instruction at bcpos calls, as lj_debug_funcname() derives it
 * (and with it jit.p and debug.getinfo(..., "n")); none when that would take too long to find. The
 * name belongs to p; it is not set with LJ_NAME_NONE.
 */
enum lj_namewhat lj_proto_callname(const struct lj_proto *p, uint32_t bcpos, const char **name);

/* True if that name, as lj_proto_callname() gave it, is p's own parameter. */
bool lj_proto_is_parameter(const struct lj_proto *p, const char *name);

/* "local", "global", ... as in debug.getinfo().namewhat; "" for LJ_NAME_NONE. */
const char *lj_namewhat_str(enum lj_namewhat what);

/* Calls fn for each definition (lua/definition.h). Returns 0, fn's value, or -ENOMEM. */
int lj_proto_definitions(const struct lj_proto *p, sym_definition_fn fn, void *arg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the readers of this folder: the target, and the functions that were read (functions.c). */
#ifndef TRACES_READER_H
#define TRACES_READER_H

#include "base/hash.h"
#include "lua/lj/ffnames.h"
#include "traces.h"

#define TRACES_NUMBERS 65536 /* a trace's number has 16 bits */

/* The copies of prototypes that were read at an address. */
struct traces_function {
	uint64_t addr;
	struct lj_proto *pt; /* the newest */
	uint32_t reading;    /* in which it was read */
	uint32_t family;     /* ... and its children */
	struct traces_function
		*before; /* another function, that lay here before; not in the hash */
	UT_hash_handle hh;
};

struct traces_reader {
	const struct lb_mem *mem;
	const struct lj_layout *lj;
	uint64_t g;
	struct lj_ffnames *names;	   /* NULL: could not be read */
	struct traces_function *functions; /* by address */
	uint32_t nfunctions;
	uint32_t reading; /* number of the current one: each reads a function once */
	uint64_t *heap;	  /* addresses of all prototypes, sorted */
	size_t nheap;
	bool has_heap;		       /* heap is complete */
	size_t ncovered, nexits;       /* of all traces */
	uint32_t live[TRACES_NUMBERS]; /* by number: index + 1 in traces_vm.traces; 0: no trace */
};

/* Reads the prototype at addr, once a reading. Errors: lj_proto_read(). */
int traces_function_at(struct traces_reader *rd, uint64_t addr, const struct lj_proto **out);

/* Reads the prototype at addr and those that it defines, once a reading. Those may fail. */
int traces_family_at(struct traces_reader *rd, uint64_t addr);

/* Returns the prototype at addr as it was read last, in whichever reading; NULL: it was not. */
const struct lj_proto *traces_function_read(const struct traces_reader *rd, uint64_t addr);

/*
 * Finds the position of a bytecode's address. hint: the prototype that may have it, or 0; else it is
 * searched for before pc. -ENOENT: there is none.
 */
int traces_place_of(struct traces_reader *rd, uint64_t pc, uint64_t hint, struct traces_place *out);

/* Adds a function's lines [from, to] to an array. 0 or -ENOMEM. */
int traces_add_lines(struct traces_lines **lines, size_t *n, const struct lj_proto *pt,
		     int32_t from, int32_t to);

void traces_functions_free(struct traces_reader *rd);

/*
 * Copies the addresses of all prototypes from the collector's list of objects to rd->heap.
 * has_heap is cleared if that changed meanwhile, or has more than ten million objects.
 */
int traces_read_heap(struct traces_reader *rd);

int traces_read_traces(struct traces_vm *vm);
int traces_read_starts(struct traces_vm *vm);
int traces_read_code(struct traces_vm *vm);
void traces_traces_free(struct traces_vm *vm);

#endif

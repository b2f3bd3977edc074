/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions of a file call which: by its frame descriptions, which stripped files have, too,
 * and the direct calls and jumps in its text. Text is foreign: what is not understood is passed
 * over, everything is bounded.
 */
#ifndef DETECT_CALL_GRAPH_H
#define DETECT_CALL_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/elf.h"

struct call_function {
	uint64_t start, size;
	bool indirect; /* calls through a pointer */
};

enum call_kind {
	CALL_CALL,
	CALL_JUMP,	/* to the first instruction of another function */
	CALL_REFERENCE, /* the address is taken, or something else is at that number */
	CALL_LINKED,	/* by a word that the dynamic linker sets, and it might be another file's */
};

/* Indices of functions. */
struct call_edge {
	uint32_t from, to;
	enum call_kind kind;
};

struct call_graph {
	struct elf_file *elf;	  /* has to outlive it */
	struct call_function *fn; /* in order of address, none inside another */
	uint32_t n;
	struct call_edge *edge;
	uint32_t nedges, capacity;
};

/*
 * The functions that lie within `window` bytes of an address of the file. 0, -ENOMEM, or what
 * elf_fdes() returns. call_graph_free() in any case.
 */
int call_graph_build(struct elf_file *elf, uint64_t near, uint64_t window, struct call_graph *g);
void call_graph_free(struct call_graph *g);

/* The function that covers an address; g->n: none. */
uint32_t call_graph_find(const struct call_graph *g, uint64_t addr);

#endif

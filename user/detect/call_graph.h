/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The static call graph of a file: functions from its call frame information, which stripped files
 * have, too, edges from the direct calls and jumps in its text. Text is untrusted: undecodable
 * bytes are skipped, all sizes are bounded.
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
	CALL_REFERENCE, /* the address is taken, or a constant is equal to it */
	CALL_LINKED,	/* through the GOT: another file's definition may take precedence */
};

/* Indices of functions. */
struct call_edge {
	uint32_t from, to;
	enum call_kind kind;
};

struct call_graph {
	struct elf_file *elf;	  /* has to outlive the graph */
	struct call_function *fn; /* sorted by address, disjoint */
	uint32_t n;
	struct call_edge *edge;
	uint32_t nedges;
};

/*
 * Builds the graph of the functions within `window` bytes of `near`. Returns 0, -ENOMEM, or the
 * error of elf_fdes(). Caller frees it in any case.
 */
int call_graph_build(struct elf_file *elf, uint64_t near, uint64_t window, struct call_graph *g);
void call_graph_free(struct call_graph *g);

/* Returns the function that covers an address; g->n: none. */
uint32_t call_graph_find(const struct call_graph *g, uint64_t addr);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the fields of lua_State that a compiled function of PUC Lua's API accesses, by the offsets
 * in its instructions: symbolic execution of moves and loads, from the first argument, L, on. Each instruction is
 * visited once.
 */
#ifndef DETECT_PUC_API_H
#define DETECT_PUC_API_H

#include <stddef.h>
#include <stdint.h>

#include "proc/elf.h"

#define PUC_PATH 4

/* Depth 1: L itself; 2: the pointer at [L + d[0]]; 3: the pointer at [[L + d[0]] + d[1]]. */
struct puc_path {
	int16_t depth; /* 0: unknown */
	int16_t d[PUC_PATH];
};

/* One access: `width` bytes at path + at. PUC_ADDRESS: the address is only computed. */
struct puc_fact {
	struct puc_path path;
	uint16_t at;
	uint8_t width;
};
enum { PUC_ADDRESS = 0 };

#define PUC_API_TEXT 4096 /* no API function of interest is larger */
#define PUC_FACTS 64

/* Stores the facts of a function's text, each once; returns their number. */
size_t puc_api_facts(const uint8_t *text, size_t size, struct puc_fact facts[PUC_FACTS]);

/*
 * The same for accesses by deeper pointers, of depth PUC_DEEP to PUC_PATH + 1, in the function at
 * `start` of a file and in those that it passes such pointers to.
 */
#define PUC_DEEP 3
#define PUC_DEEP_FACTS 128
size_t puc_api_deep_facts(struct elf_file *elf, uint64_t start,
			  struct puc_fact facts[PUC_DEEP_FACTS]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a compiled function of PUC Lua's API reads of its lua_State: the offsets stand in its
 * instructions. L comes in rdi; registers are followed from there through moves and loads, along
 * each branch once.
 */
#ifndef DETECT_PUC_API_H
#define DETECT_PUC_API_H

#include <stddef.h>
#include <stdint.h>

#include "proc/elf.h"

#define PUC_PATH 4

/* L itself: depth 1; what [L + d[0]] holds: depth 2; what [[L + d[0]] + d[1]] holds: depth 3. */
struct puc_path {
	int16_t depth; /* 0: anything else */
	int16_t d[PUC_PATH];
};

/* One access: `width` bytes at path + at. PUC_ADDRESS: no access, the address is computed. */
struct puc_fact {
	struct puc_path path;
	uint16_t at;
	uint8_t width;
};
enum { PUC_ADDRESS = 0 };

#define PUC_API_TEXT 4096 /* no API function of interest is larger */
#define PUC_FACTS 64

/* Facts of a function's text, each once, at most PUC_FACTS; returns how many. */
size_t puc_api_facts(const uint8_t *text, size_t size, struct puc_fact facts[PUC_FACTS]);

/*
 * Facts of deeper pointers, in the function at `start` of a file and in those that it hands such
 * on to, from depth PUC_DEEP to PUC_PATH + 1. Each once, at most PUC_DEEP_FACTS; returns how many.
 */
#define PUC_DEEP 3
#define PUC_DEEP_FACTS 128
size_t puc_api_deep_facts(struct elf_file *elf, uint64_t start,
			  struct puc_fact facts[PUC_DEEP_FACTS]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of struct elf_file: for elf*.c only. */
#ifndef TARGET_ELF_PRIV_H
#define TARGET_ELF_PRIV_H

#include <gelf.h>

#include "target/elf.h"

struct elf_load {
	uint64_t vaddr, offset, filesz;
	bool exec, write;
};

struct elf_sym {
	uint64_t start, size;
	const char *name; /* in a string table of libelf's */
	bool global;
};

struct elf_file {
	int fd; /* -1: bytes */
	const uint8_t *bytes;
	size_t len;
	void *owned; /* copy of the bytes */
	Elf *elf;
	struct elf_load *loads;
	size_t nloads;
	uint64_t searched;			  /* bytes, by elf_find_bytes() */
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* address, 0: none */
	bool interp;
	uint16_t type;
	struct elf_sym *syms; /* functions, sorted; loaded on demand */
	size_t nsyms;
	bool have_syms;
};

/* Bytes of the file; whole reads only. */
int elf_pread(const struct elf_file *elf, void *dst, size_t size, uint64_t offset);

/*
 * All that is in the file from vaddr to the end of its segment, `max` bytes at most. Caller frees.
 */
int elf_read_rest(struct elf_file *elf, uint64_t vaddr, size_t max, uint8_t **bytes, size_t *len);

#endif

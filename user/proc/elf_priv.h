/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of struct elf_file: for elf*.c only. */
#ifndef PROC_ELF_PRIV_H
#define PROC_ELF_PRIV_H

#include <elf.h>

#include "elf.h"

struct elf_load {
	uint64_t vaddr, offset, filesz;
	bool exec, write;
};

struct elf_sym {
	uint64_t start, size;
	uint32_t name; /* offset in elf_file.names */
	bool global;
};

/* A symbol whose name begins with "lua". */
struct elf_lua_sym {
	char name[48];
	uint64_t value, size;
	bool defined;
};

struct elf_file {
	int fd;	    /* -1: bytes, or closed by elf_keep_symbols(), or not to be read again */
	bool apart; /* fd is open with O_PATH: another process reads it */
	uint64_t dev;
	const uint8_t *bytes;
	uint64_t len; /* of the file, when it was opened */
	void *owned;  /* copy of the bytes */
	struct budget work;
	Elf64_Shdr *sections;
	size_t nsections;
	uint32_t section_names; /* index */
	struct elf_load *loads;
	size_t nloads;
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* address, 0: none */
	struct elf_sym *syms;			  /* functions, sorted; loaded on demand */
	size_t nsyms;
	char *names; /* the string table of syms */
	size_t names_size;
	bool have_syms;
	char name[ELF_NAME_MAX];     /* the last result of elf_symbol() */
	struct elf_lua_sym *lua_sym; /* .dynsym's, then .symtab's; loaded on demand */
	size_t nlua_syms;
	bool have_lua_syms, many_lua_syms; /* many: more than were stored */
};

/* Reads `size` bytes of the file or fails. -EDQUOT: the budget is used up. */
int elf_pread(struct elf_file *elf, void *dst, size_t size, uint64_t offset);

/* The segment of which the file holds the byte at an address; NULL if no segment holds it. */
const struct elf_load *elf_load_at(const struct elf_file *elf, uint64_t vaddr);

/*
 * Reads the file's bytes from vaddr to the end of the segment, `max` at most. Caller frees.
 */
int elf_read_rest(struct elf_file *elf, uint64_t vaddr, size_t max, uint8_t **bytes, size_t *len);

/* Returns the first section of a type at or after `from`; NULL if no section has it. */
const Elf64_Shdr *elf_section(const struct elf_file *elf, uint32_t type, const Elf64_Shdr *from);

/*
 * Calls fn for each entry of `size` bytes of a section, which is read in pieces. Entries beyond the
 * file's end are left out. A nonzero return ends it and is returned. -EDQUOT: the budget is used
 * up.
 */
int elf_each_entry(struct elf_file *elf, const Elf64_Shdr *sh, size_t size,
		   int (*fn)(void *arg, const void *entry), void *arg);

/* Reads a section of at most `max` bytes and appends a zero byte. Caller frees. */
int elf_read_section(struct elf_file *elf, const Elf64_Shdr *sh, size_t max, char **bytes,
		     size_t *len);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads ELF files of targets: symbols, data, frame descriptions, LuaJIT's assembler VM.
 * 64-bit little-endian files only. Files are foreign: read by pread, never mapped (a
 * truncated mapping kills the reader). All work on one file has a budget, ELF_WORK, and may be
 * charged to a larger one as well; no more than 256 MiB of a file are in memory at a time.
 *
 * Why not libelf (0.188)? It allocates for each section that a header claims: 2.7 GB for a file of
 * 8 KB. It keeps each table that it has read: 190 MiB for each section that names the same hole.
 *
 * All addresses are the file's own (st_value, p_vaddr); elf_bias() converts them.
 */
#ifndef PROC_ELF_H
#define PROC_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"

struct elf_file;

/*
 * -ENOEXEC: no ELF file, or not of this kind. -EFBIG, -E2BIG: it is refused, and elf_refused() says
 * why (NULL for other errors). elf_open_fd() duplicates fd.
 */
int elf_open(const char *path, struct elf_file **out);
int elf_open_fd(int fd, struct elf_file **out);
int elf_open_bytes(const void *bytes, size_t len, struct elf_file **out); /* copies them */
void elf_close(struct elf_file **elf);
const char *elf_refused(int err);

/* What reading a file and looking through it may take: bytes and steps. */
#define ELF_WORK (512u << 20)
void elf_charge(struct elf_file *elf, struct budget *of);
/* Takes steps beyond those of reading. False: the budget is used up. */
bool elf_spend(struct elf_file *elf, uint64_t steps);
/* Answers may be missing: the budget of this (of_what) is used up. NULL: it is not. */
const char *elf_exceeded(const struct elf_file *elf);

/* Reads loaded content by address. Whole reads only; bytes beyond p_filesz are not there. */
int elf_read(struct elf_file *elf, uint64_t vaddr, void *dst, size_t size);

/*
 * The lowest address from `from` on at which the file's constants hold these bytes (at most 64);
 * -ENOENT. Text is searched only in files that keep their constants there. -EFBIG: not found before
 * the budget was used up.
 */
int elf_find_bytes(struct elf_file *elf, uint64_t from, const void *bytes, size_t len,
		   uint64_t *vaddr);

/*
 * What to add to an address of the file to get the one in the process, where the mapping
 * [map_start, ...) shows the file from map_offset on. -ENOENT: no segment is mapped like this.
 */
int elf_bias(struct elf_file *elf, uint64_t map_start, uint64_t map_offset, uint64_t *bias);

/*
 * Where in the file the content of an address is; -ENOENT: nowhere. There is no way back: a page at
 * a border of two segments holds addresses of both.
 */
int elf_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset);

/*
 * The function symbol that covers vaddr, of .symtab, else of .dynsym. The name belongs to elf until
 * the next one is asked for; it is cut at ELF_NAME_MAX. At equal addresses: global before local,
 * then the shorter name. -ENOENT: none covers it.
 */
#define ELF_NAME_MAX 1024
int elf_symbol(struct elf_file *elf, uint64_t vaddr, const char **name, uint64_t *start);

/*
 * Reads the symbols that elf_symbol() needs. elf_keep_symbols() then closes the file: nothing but
 * elf_symbol() and elf_bias() has an answer after it, however it ended.
 */
int elf_load_symbols(struct elf_file *elf);
int elf_keep_symbols(struct elf_file *elf);
uint64_t elf_kept_bytes(const struct elf_file *elf); /* bytes, but for the file's own */

/* Address of a defined symbol by name in .dynsym, or .symtab; -ENOENT. */
int elf_lookup(struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size);

/* True if .dynsym imports a symbol of this name. */
bool elf_wants(struct elf_file *elf, const char *name);

/*
 * Calls fn for each word of data that holds an address of the file itself, as far as the file
 * shows: by its relocations, or, where it has none of that kind, by what its writable segments
 * hold. A nonzero return ends it and is returned.
 */
struct elf_pointer {
	uint64_t slot;	/* address of the word */
	uint64_t value; /* what it points to */
};
int elf_pointers(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
		 void *arg);

/*
 * The same for each word of data that the dynamic linker sets to a symbol which this file defines:
 * the procedure linkage table jumps by these. (Another file may define it, too, and come first.)
 */
int elf_linked(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
	       void *arg);

/* A function as .eh_frame describes it. */
struct elf_fde {
	uint64_t start, size;
	uint32_t cfa_offset; /* CFA = rsp + this throughout; 0: anything else */
	uint32_t saved;	     /* bit r: DWARF register r is saved at a fixed place */
};
/* Calls fn for each FDE in order of address. A nonzero return ends it and is returned. */
int elf_fdes(struct elf_file *elf, int (*fn)(void *arg, const struct elf_fde *fde), void *arg);

/* LuaJIT's assembler VM: found by its frame description, so stripped files will do. */
struct elf_lj_vm {
	uint64_t start, size; /* lj_vm_asm_begin up to lj_vm_ffi_call */
	uint32_t cframe_size; /* 80 */
};
int elf_find_lj_vm(struct elf_file *elf, struct elf_lj_vm *vm);

#endif

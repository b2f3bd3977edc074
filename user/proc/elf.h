/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads ELF files of targets: symbols, data, frame descriptions, LuaJIT's assembler VM.
 * 64-bit little-endian files only. Files are untrusted: read by pread, never mapped (truncating a
 * mapped file kills the reader). A budget, ELF_WORK, bounds the work on one file; it may be part of
 * a larger one. At most 256 MiB of a file are in memory at a time.
 *
 * Not libelf (0.188): it allocates for each section that a header claims, 2.7 GB for a file of
 * 8 KB. It keeps each table it has read: 190 MiB for each section header of the same hole.
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
 * -ENOEXEC: not an ELF file of this kind. -EFBIG, -E2BIG, -ETIMEDOUT: the file is refused;
 * elf_refused() returns why (NULL for other errors). elf_open_fd() duplicates fd. A file that is
 * open with O_PATH is read by the process of base/reader.h; if that does not answer, the budget is
 * used up.
 */
int elf_open(const char *path, struct elf_file **out);
int elf_open_fd(int fd, struct elf_file **out);
int elf_open_bytes(const void *bytes, size_t len, struct elf_file **out); /* copies them */
void elf_close(struct elf_file **elf);
const char *elf_refused(int err);

/* The budget of one file: bytes read plus steps of searches. */
#define ELF_WORK (512u << 20)
void elf_charge(struct elf_file *elf, struct budget *of);
/* Charges steps, in addition to those of reading. False: the budget is used up. */
bool elf_spend(struct elf_file *elf, uint64_t steps);
/* Returns of_what of the budget that is used up: results may be incomplete. NULL if all have some
 * left. */
const char *elf_exceeded(const struct elf_file *elf);

/* Reads `size` bytes of a segment or fails; bytes beyond p_filesz cannot be read. */
int elf_read(struct elf_file *elf, uint64_t vaddr, void *dst, size_t size);

/*
 * Finds the lowest address, from `from` on, of these bytes (at most 64) in the file's constants;
 * -ENOENT. Searches text only in files that keep constants there. -EFBIG: the budget was used up
 * before they were found.
 */
int elf_find_bytes(struct elf_file *elf, uint64_t from, const void *bytes, size_t len,
		   uint64_t *vaddr);

/*
 * Computes the load bias (process address minus file address) from a mapping of the file at
 * map_start, from map_offset on. -ENOENT: no segment has this offset.
 */
int elf_bias(struct elf_file *elf, uint64_t map_start, uint64_t map_offset, uint64_t *bias);

/*
 * Converts an address to a file offset; -ENOENT: the file has no content for it. The inverse is
 * ambiguous: a page at the border of two segments is mapped with both.
 */
int elf_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset);

/*
 * Finds the function symbol that covers vaddr, of .symtab, else of .dynsym. The name is elf's,
 * valid until the next call, and cut at ELF_NAME_MAX. At equal addresses: global before local, then
 * the shorter name. -ENOENT: none covers it.
 */
#define ELF_NAME_MAX 1024
int elf_symbol(struct elf_file *elf, uint64_t vaddr, const char **name, uint64_t *start);

/*
 * Reads the symbols that elf_symbol() needs. elf_keep_symbols() also closes the file, on errors,
 * too: only elf_symbol() and elf_bias() work after it.
 */
int elf_load_symbols(struct elf_file *elf);
int elf_keep_symbols(struct elf_file *elf);
uint64_t elf_kept_bytes(const struct elf_file *elf); /* of memory */

/* Address of a defined symbol by name in .dynsym, or .symtab; -ENOENT. */
int elf_lookup(struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size);

/* True if .dynsym imports a symbol of this name. */
bool elf_wants(struct elf_file *elf, const char *name);

/*
 * Calls fn for each data word that holds an address inside the file, by its relative relocations.
 * Without such: for each aligned word of its writable segments whose value is one. A nonzero return
 * ends it and is returned.
 */
struct elf_pointer {
	uint64_t slot;	/* address of the word */
	uint64_t value; /* the address in it */
};
int elf_pointers(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
		 void *arg);

/*
 * The same for each data word that the dynamic linker binds to a symbol which this file defines
 * (GOT entries, through which the PLT jumps). Another file's definition may take precedence.
 */
int elf_linked(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
	       void *arg);

/* A function as .eh_frame describes it. */
struct elf_fde {
	uint64_t start, size;
	uint32_t cfa_offset; /* CFA = rsp + this in the whole function; 0: otherwise */
	uint32_t saved;	     /* bit r: DWARF register r is saved at a fixed offset */
};
/* Calls fn for each FDE in order of address. A nonzero return ends it and is returned. */
int elf_fdes(struct elf_file *elf, int (*fn)(void *arg, const struct elf_fde *fde), void *arg);
/*
 * True if so few functions are described that Lua's are not: it was compiled with -fno-asynchronous-unwind-tables, so that only
 * the C library's objects have .eh_frame; or that cannot be found, as in a static program without section headers.
 */
bool elf_lacks_fdes(struct elf_file *elf);

/* LuaJIT's assembler VM, found by its call frame information, which stripped files have, too. */
struct elf_lj_vm {
	uint64_t start, size; /* lj_vm_asm_begin up to lj_vm_ffi_call */
	uint32_t cframe_size; /* 80, 96 */
};
int elf_find_lj_vm(struct elf_file *elf, struct elf_lj_vm *vm);

/*
 * Finds the VM as elf_find_lj_vm() does. A VM that is built with LUAJIT_NO_UNWIND has no call frame
 * information. It lies in a gap between two functions that have some. So without a VM, vms gets the
 * gaps of up to `most` bytes in order of address, with a cframe_size of 0. Returns the number of
 * entries, up to ELF_LJ_VMS, or a negative errno. *lacks: as elf_lacks_fdes().
 */
#define ELF_LJ_VMS 16
int elf_lj_vms(struct elf_file *elf, uint64_t most, struct elf_lj_vm vms[ELF_LJ_VMS], bool *lacks);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arrays of luaL_Reg in an ELF file: {name, function}, with {NULL, NULL} behind the last. C code registers
 * a library of functions in a VM by one, so that they are known without any VM.
 */
#ifndef PROC_ELF_REGS_H
#define PROC_ELF_REGS_H

#include <stddef.h>
#include <stdint.h>

#include "elf.h"

#define ELF_REG_NAME 16
#define ELF_REGS_MOST 64

struct elf_regs {
	/* PUC Lua's library that has all of these names: "string"; "io.method" for those of files; "" for the
	 * basic one; NULL: none of these */
	const char *library;
	char name[ELF_REGS_MOST][ELF_REG_NAME]; /* of lower-case letters, digits, underscores */
	uint64_t function[ELF_REGS_MOST];	/* address in the file; 0: filled in at run time */
	size_t n;
};

/* Returns the function of this name; 0: none. */
uint64_t elf_regs_function(const struct elf_regs *regs, const char *name);

/* Calls fn for each array of three functions or more. Returns fn's nonzero value, which ends it; -ENOENT: there are
 * too many pointers to search; or -errno. */
int elf_regs(struct elf_file *elf, int (*fn)(void *arg, const struct elf_regs *regs), void *arg);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The build of a Lua VM in an ELF file: the result of lj_recognise() and puc_recognise(). */
#ifndef DETECT_BUILD_H
#define DETECT_BUILD_H

#include <stdint.h>

#include <unwind/abi.h>

/* All addresses are the file's. */
struct vm_build {
	char name[80];	       /* the layout: "PUC Lua 5.4.3 to 5.4.8" */
	char release[80];      /* as exact as the file says: "PUC Lua 5.4.4" */
	uint64_t start, size;  /* text of the interpreter: LuaJIT's assembler VM, luaV_execute */
	uint64_t offset;       /* start as an offset into the file */
	uint64_t gc_lo, gc_hi; /* PUC Lua: text of the collector; 0, 0: not found */
	char evidence[320];    /* measurements, for -v and doctor: "lua_ident says ..." */
	struct lb_build build; /* what BPF needs */
};

#endif

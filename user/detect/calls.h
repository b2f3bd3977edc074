/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a VM's code makes calls: the instructions that are to have a probe, so that each call of a
 * function hits one of them once. Found in the code, as a stripped file has no symbols of them. Each
 * is an instruction that is decoded from a known boundary: a breakpoint inside an instruction would
 * change what the target does.
 */
#ifndef DETECT_CALLS_H
#define DETECT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/calls.h>

#include "base/error.h"
#include "build.h"
#include "proc/elf.h"

struct call_probe {
	uint64_t addr; /* the file's */
	enum lb_call_site site;
	bool stepped; /* the kernel executes this instruction by a single step: a trap more */
};

#define CALL_PROBES 192 /* LuaJIT has some 60 fast functions */
struct call_probes {
	struct call_probe at[CALL_PROBES];
	uint32_t n;
};

/* Of a build that was recognised in this file. -ENOTSUP: not found, err says what. */
int lj_call_probes(struct elf_file *elf, const struct vm_build *build, struct call_probes *out,
		   struct error *err);
int puc_call_probes(struct elf_file *elf, const struct vm_build *build, struct call_probes *out,
		    struct error *err);

/* Appends one. -ENOTSUP: too many. */
int call_probes_add(struct call_probes *probes, const struct call_probe *probe);

#endif

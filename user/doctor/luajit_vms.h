/* SPDX-License-Identifier: BSD-2-Clause */
/* The VMs of LuaJIT that a process has: where each is, and its layout. */
#ifndef DOCTOR_LUAJIT_VMS_H
#define DOCTOR_LUAJIT_VMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/error.h"

struct luajit_vm {
	struct lb_build build;
	char release[80]; /* "LuaJIT 2.1.0-beta3" */
	uint64_t g;	  /* its global_State */
	bool jit;	  /* the compiler is on */
};

struct luajit_vms {
	struct luajit_vm *at;
	size_t n;
	bool complete; /* all memory was searched */
};

/*
 * Searches the process's memory. -ENODATA: it has no VM of LuaJIT that luabpf knows; other errors are
 * those of scan_process() and vm_states_find(). err is set.
 */
int luajit_vms_find(pid_t pid, struct luajit_vms *out, struct error *err);
void luajit_vms_free(struct luajit_vms *vms);

/* Remembers the files of processes between searches. */
struct luajit_finder;
int luajit_finder_new(struct luajit_finder **out);
void luajit_finder_free(struct luajit_finder **finder);

/* Finds the VM of a thread (lua_State). Returns 0; -ENOENT if L is not a thread of a known VM; or an error of
 * scan_process(). */
int luajit_vm_of(struct luajit_finder *finder, pid_t pid, uint64_t L, struct luajit_vm *out);

/* Reads the thread's global_State, if it is one of this layout. */
int luajit_vm_thread(pid_t pid, const struct lj_layout *lj, uint64_t L, uint64_t *g);

#endif

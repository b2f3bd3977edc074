/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader's state, and what its files use of each other:
 *   loader.c           opens, loads and frees the program of the events and its maps
 *   loader_families.c  the programs of families
 *   loader_procs.c     writes the maps that say which processes, files and builds have Lua
 *   loader_events.c    the perf events that run the program
 *   loader_counts.c    reads what the programs have counted
 */
#ifndef BPF_LOADER_PRIV_H
#define BPF_LOADER_PRIV_H

#include "keepers.h"
#include "luabpf.skel.h"
#include "module_pool.h"
#include "loader.h"

struct attached;

struct loader {
	struct luabpf_bpf *skel;
	struct bpf_program
		*program;	   /* of the skeleton, the one that is loaded: that of the events */
	int btf;		   /* of kernel_structs; -1 */
	struct families *families; /* NULL: they are loaded here */
	uint32_t families_here;
	int families_error; /* of the first that failed here */
	struct module_pool pool;
	struct attached *attached;
	size_t nattached, next_varied;
	struct keepers keepers;
	uint64_t event_ns;  /* CPU time between two events, on average */
	uint64_t cpu_ns;    /* that detached events had counted */
	int stats_fd;	    /* keeps the kernel's run-time counting on */
	uint64_t zone_seed; /* a target that knew it could make two names with one hash */
};

/* Prepares the programs of families, each of which is loaded when it is requested. */
int loader_start_families(struct loader *loader, struct error *err);

/* The other programs of an object are not loaded. */
void loader_choose_program(const struct bpf_object *object, const struct bpf_program *chosen);

#endif

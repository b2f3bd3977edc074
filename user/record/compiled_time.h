/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which share of a process's CPU time goes by in LuaJIT's compiled code, where calls have no probe:
 * its VMs' state is read in each round, and counts for the CPU time since the round before. A
 * process with several threads in several VMs is charged with any of them.
 */
#ifndef RECORD_COMPILED_TIME_H
#define RECORD_COMPILED_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem_remote.h"
#include "detect/build.h"

#define COMPILED_TIME_VMS 16 /* more are not looked at */

struct compiled_time {
	struct mem_remote remote;
	struct {
		uint64_t g;
		const struct lj_layout *lj;
	} vm[COMPILED_TIME_VMS];
	uint32_t n;
	bool looked; /* at a VM while its process lived */
	bool on;     /* a compiler was on, or compiled code ran */
	uint64_t last_cpu_ns, cpu_ns, compiled_ns;
};

void compiled_time_init(struct compiled_time *traces, pid_t pid);

/* A VM that made a call. build outlives this; NULL, or not LuaJIT's: nothing. 0. */
int compiled_time_meet(struct compiled_time *traces, const struct vm_build *build, uint64_t g);

/* A round. cpu_ns: of the process so far. */
void compiled_time_look(struct compiled_time *traces, uint64_t cpu_ns);

/* Returns the share, 0 to 1. */
double compiled_time_share(const struct compiled_time *traces);

#endif

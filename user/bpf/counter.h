/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the calls of one process by function, with uprobes: loads and attaches bpf/count.bpf.c, and
 * reads its counts. The kernel removes the probes and the programs when the counter is freed, or
 * luabpf ends in any way: they belong to file descriptors.
 */
#ifndef BPF_COUNTER_H
#define BPF_COUNTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/calls.h>

#include "base/error.h"

struct counter;

struct counter_options {
	pid_t pid;
	uint32_t epoch; /* what the records call its image */
	bool multi;	/* of trap_measure() */
};

/* Nothing is attached yet. */
int counter_open(const struct counter_options *options, struct counter **out, struct error *err);
void counter_free(struct counter **counter);

int counter_set_build(struct counter *counter, uint32_t index, const struct lb_build *build);

/* Probes at offsets of the file that fd has open: in all of the process's mappings of it. */
struct counter_file {
	int fd;
	uint32_t family; /* enum lb_family */
	uint32_t n;
	const uint64_t *offsets, *cookies; /* LB_CALL_COOKIE() */
};
int counter_attach(struct counter *counter, const struct counter_file *file, struct error *err);

/* Begins to count: when all probes are attached. */
void counter_begin(struct counter *counter);
/* Ends it, and removes the probes; the counts stay readable. */
void counter_detach(struct counter *counter);

/* The ring buffer map, for ring_open(), which also gets the words. */
int counter_ring_fd(const struct counter *counter);
__u64 *counter_stack_counts(const struct counter *counter);

/* Calls fn for each function, with its count so far. 0 or -errno. */
typedef void counter_fn(void *arg, const struct lb_call_key *key, uint64_t count);
int counter_each(const struct counter *counter, counter_fn *fn, void *arg);

/* Returns how often a probe was hit, and in *misses the calls that no function has. */
uint64_t counter_hits(const struct counter *counter, uint64_t misses[LB_CALL_MISSES]);

/* Returns how many pages of executable mappings the process had at the last hit; 0: there was none. */
uint32_t counter_exec_pages(const struct counter *counter);

/* Returns the hits that the kernel did not pass to the program. */
uint64_t counter_dropped(const struct counter *counter);

/* Returns the program's run time for a hit, in ns: a guess until it has run often. */
double counter_program_ns(const struct counter *counter);

#endif

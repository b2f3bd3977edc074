/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The intervals of a recording. Each has a profile of its own; BPF samples on from one to the next.
 * An interval's counts are the differences of cumulative ones at its ends, so that no sample is in
 * two of them, or in none. A stack that is still in the ring, or waits for its names, is the next
 * one's.
 */
#ifndef RECORD_INTERVAL_H
#define RECORD_INTERVAL_H

#include <stdint.h>

#include <unwind/abi.h>

#include "bpf/loader.h"
#include "bpf/ring.h"
#include "losses.h"
#include "process.h"
#include "prof/prof.h"
#include "sym/symbolizer.h"

/* The cumulative counts of a recording at one moment. */
struct moment {
	uint64_t ns;	  /* CLOCK_MONOTONIC */
	uint64_t time_ns; /* since the epoch */
	uint64_t status_counts[LB_STATUS__MAX];
	uint64_t cpu_ns, bpf_ns, bpf_runs, snapshot_line, records;
};

struct intervals {
	/* set by the owner, who outlives them */
	struct loader *loader;
	struct ring *ring;
	struct symbolizer *symbolizer;
	struct losses *losses;
	struct processes *processes;

	struct prof *prof;	      /* of the current one */
	struct moment start;	      /* of the recording */
	struct moment begin, counted; /* of the current one; when its counts were taken */
	struct prof *before; /* counts of the earlier ones' samples, without stacks; NULL: none */
	uint64_t stacks_before;
};

/* The first interval begins, with a profile that is empty yet. */
void intervals_begin(struct intervals *iv, uint64_t period_ns);

/*
 * Brings the profile's losses, duration and user up to date. status_counts: loader_status_counts() before the last
 * drain; ns: until when it was sampled, CLOCK_MONOTONIC. 0 or -ENOMEM.
 */
int intervals_count(struct intervals *iv, const uint64_t status_counts[LB_STATUS__MAX],
		    uint64_t ns);

/*
 * After intervals_count(): puts an empty profile in the place of the current one, and releases what
 * only that one needed. 0 or -ENOMEM.
 */
int intervals_next(struct intervals *iv);

/* Makes a profile without stacks that has all samples and losses so far. 0 or -ENOMEM. */
int intervals_total(const struct intervals *iv, struct prof **out);

void intervals_free(struct intervals *iv);

#endif

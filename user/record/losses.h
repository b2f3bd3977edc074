/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the samples that did not become a stack, by reason. User space adds its own as they occur;
 * losses_count() adds what BPF has counted since the last call, and malformed records.
 */
#ifndef RECORD_LOSSES_H
#define RECORD_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "prof/prof.h"

/* User space's own reasons; others are of unwind/status.def, or a layout's (family_misfit()). */
#define LOSS_GONE "proto-collected"
#define LOSS_BAD_RECORD "bad-record"
#define LOSS_UNNAMED "unnamed"

/* Returns the sentence that explains a reason; the reason itself if it is unknown. */
const char *loss_sentence(const char *reason);

/* Returns the i-th reason of a loss, outside Lua excepted; NULL beyond the last. */
const char *loss_reason(size_t i);

struct losses {
	struct prof *prof; /* stores them: a report of the saved profile shows them, too */
	uint64_t not_lua;  /* BPF did not recognise their process, which had no VM */
	bool everywhere;   /* then these are no target's, and do not count */
	uint64_t bad;	   /* records that were refused; both of these since losses_count() */
	uint64_t counted[LB_STATUS__MAX];	/* BPF's counts at the last losses_count() */
	uint64_t status_counts[LB_STATUS__MAX]; /* the same without not_lua, as -v shows them */
};

/* 0 or -ENOMEM. */
int losses_add(struct losses *losses, const char *reason, uint64_t count);

/*
 * status_counts: as BPF has counted them so far. A process's record comes before its sample is counted: with
 * counts from before the ring was drained, not_lua is never less than what belongs to them. 0 or
 * -ENOMEM.
 */
int losses_count(struct losses *losses, const uint64_t status_counts[LB_STATUS__MAX]);

/*
 * Makes a profile of one process, without stacks, from BPF's counts. `shown` samples became stacks;
 * the rest of the resolved is LOSS_UNNAMED. 0 or -ENOMEM.
 */
int losses_of_process(pid_t pid, const uint64_t status_counts[LB_STATUS__MAX], uint64_t shown,
		      struct prof **out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks that BPF sent, and how many samples were taken of each since the last
 * stacks_commit(). BPF sends a stack whole, and then counts it in a slot of its own as long as the
 * slot is not another stack's (LB_STACKS in unwind/abi.h).
 */
#ifndef BPF_STACKS_H
#define BPF_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>

struct stacks;

/* slots: the LB_STACKS words that BPF counts in; they outlive the object. 0 or -ENOMEM. */
int stacks_new(__u64 *slots, struct stacks **out);
void stacks_free(struct stacks **stacks);

/* Adds one sample, whose record was checked; copies it when its stack is new. 0 or -ENOMEM. */
int stacks_add(struct stacks *stacks, const struct lb_rec_sample *sample);

/*
 * Takes the counts out of the slots of all stacks that were added, and empties each slot that had
 * none since the last call: another stack can take it. To be called when the ring was read.
 */
void stacks_collect(struct stacks *stacks);

/* Takes samples that are the same, or returns false: they are handed on again at the next commit. */
typedef bool stacks_sample_fn(void *arg, const struct lb_rec_sample *sample, uint32_t count);

/* Hands on each stack that has samples. Forgets those that have neither samples nor a slot. */
void stacks_commit(struct stacks *stacks, stacks_sample_fn *fn, void *arg);

/* Samples that BPF counted for stacks that were never added: their records were refused. */
uint64_t stacks_unknown(const struct stacks *stacks);

#endif

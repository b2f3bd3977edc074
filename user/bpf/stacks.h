/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of the stacks that BPF sent, with the number of samples of each since the last
 * stacks_commit(). BPF sends a stack whole once, and then counts it in its hash slot as long as no
 * other stack has the slot (LB_STACKS in unwind/abi.h).
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
 * Moves the counts out of the slots of all stacks that were added, and frees each slot that counted
 * nothing since the last call for another stack. To be called when the ring was read.
 */
void stacks_collect(struct stacks *stacks);

/* Receives `count` samples of one stack. If it returns false, the next commit repeats the call. */
typedef bool stacks_sample_fn(void *arg, const struct lb_rec_sample *sample, uint32_t count);

/* Calls fn for each stack that has samples. Frees stacks that have neither samples nor a slot. */
void stacks_commit(struct stacks *stacks, stacks_sample_fn *fn, void *arg);

/* Returns the samples that BPF counted for stacks whose records were refused. */
uint64_t stacks_unknown(const struct stacks *stacks);

#endif

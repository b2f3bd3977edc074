/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of the stacks that BPF sent, with the number of samples of each that stacks_commit() has
 * not handed on. BPF counts a stack in its hash slot while it has that, and sends it whole else: the
 * first time, when another stack has the slot, and when the counter is full (LB_STACKS in unwind/abi.h).
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
 * Moves the counts out of the slots of all stacks that were added. Empties each slot that has counted
 * nothing since the last call, so that another stack can take it. Stacks whose records are still in the
 * ring keep their counts.
 */
void stacks_collect(struct stacks *stacks);

/*
 * Receives `count` samples of one stack. Returns false if they must wait, as a function in them was freed
 * or the recording ends: the next commit passes them again, with those that came since.
 */
typedef bool stacks_sample_fn(void *arg, const struct lb_rec_sample *sample, uint32_t count);

/* Hands the samples to fn, stack by stack. Frees stacks that have neither samples nor a slot. */
void stacks_commit(struct stacks *stacks, stacks_sample_fn *fn, void *arg);

/* Returns the samples that BPF counted for stacks whose records never came, or failed their checks. */
uint64_t stacks_unknown(const struct stacks *stacks);

#endif

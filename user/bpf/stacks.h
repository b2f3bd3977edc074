/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples that BPF may refer to: it sends each stack once, and names it afterwards (struct
 * lb_rec_again).
 */
#ifndef BPF_STACKS_H
#define BPF_STACKS_H

#include <stdint.h>

#include <luabpf/abi.h>

struct stacks;

/* 0 or -ENOMEM. */
int stacks_new(struct stacks **out);
void stacks_free(struct stacks **stacks);

/* Takes a copy of a sample that was checked, in place of another of the same place. Without memory
 * the place stays empty. */
void stacks_keep(struct stacks *stacks, const struct lb_rec_sample *sample);

/* The sample that is meant, valid until the next call; NULL: it is not there any more. */
const struct lb_rec_sample *stacks_find(struct stacks *stacks, const struct lb_rec_again *again);

/*
 * Takes what BPF has counted in a place of `sent`, when it is for the sample that is kept there.
 * Returns that, valid until the next call, and *count; NULL: nothing was, or for another one, which
 * may be under way.
 */
const struct lb_rec_sample *stacks_take(struct stacks *stacks, __u64 *sent, uint32_t place,
					uint32_t *count);

/*
 * To be called when all that was sent has been kept. Returns how many samples were counted in a
 * place for a stack that was not there at the last call, either: another took its place, and BPF is
 * made to send it anew.
 */
uint32_t stacks_lose(struct stacks *stacks, __u64 *sent, uint32_t place);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether a build's layout is the one that it was taken for. Each prototype votes: it can be
 * what it is read as, or it cannot. When most cannot, the VM is another, and none of its samples is believed.
 */
#ifndef SYM_VOTES_H
#define SYM_VOTES_H

#include <stdbool.h>

#include <unwind/abi.h>

struct votes; /* of all builds; NULL: none yet */

void votes_free(struct votes **votes);

/* Why most of the build's prototypes cannot be what they are read as; NULL: they can. */
const char *votes_misfit(struct votes *votes, const struct lb_build *build);

/* Counts one; misfit: why it cannot be, or NULL. True if that changes votes_misfit(). */
bool votes_add(struct votes **votes, const struct lb_build *build, const char *misfit);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bound on the work that foreign input may cause: bytes read and steps taken, never time, so that
 * a slow or busy machine gives the same answers. A budget may be part of a larger one: that of a
 * file is part of its process's, which is part of that of the whole run.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t remaining;
	struct budget *of; /* NULL: part of none */
	const char *of_what;
	bool until_signal; /* refuses all when a signal has ended the recording */
};

/*
 * Takes n from this budget and from all that it is part of. False if one of them has less: that one
 * is used up from then on, and nothing was taken from the others.
 */
bool budget_spend(struct budget *b, uint64_t n);

/*
 * For a budget of a recording that may last for weeks: gives back what has been earned since
 * *filled_ns (CLOCK_MONOTONIC), `whole` in an hour, up to `whole`.
 */
void budget_refill(struct budget *b, uint64_t whole, uint64_t *filled_ns);

/* Returns of_what of the innermost budget that is used up, or NULL. */
const char *budget_used_up(const struct budget *b);

#endif

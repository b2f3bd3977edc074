// SPDX-License-Identifier: BSD-2-Clause
#include "base/budget.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/signals.h"

bool budget_spend(struct budget *b, uint64_t n)
{
	struct budget *i;

	for (i = b; i; i = i->of)
		if (i->until_signal && signals_caught())
			return false;
	for (i = b; i; i = i->of)
		if (!i->remaining || i->remaining < n) {
			i->remaining = 0;
			return false;
		}
	for (i = b; i; i = i->of)
		i->remaining -= n;
	return true;
}

#define HOUR_US 3600000000ULL

void budget_refill(struct budget *b, uint64_t whole, uint64_t *filled_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t more = (now - *filled_ns) / 1000 * (whole / HOUR_US);

	*filled_ns = now;
	b->remaining += more < whole - b->remaining ? more : whole - b->remaining;
}

const char *budget_used_up(const struct budget *b)
{
	for (; b; b = b->of)
		if (!b->remaining)
			return b->of_what;
	return NULL;
}

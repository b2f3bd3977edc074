// SPDX-License-Identifier: BSD-2-Clause
#include "votes.h"

#include <stdint.h>
#include <stdlib.h>

struct votes {
	const struct lb_build *build;
	uint32_t fit, misfit;
	const char *why; /* of the first misfit */
	struct votes *next;
};

void votes_free(struct votes **votes)
{
	struct votes *v;

	while ((v = *votes)) {
		*votes = v->next;
		free(v);
	}
}

static struct votes *find(struct votes *votes, const struct lb_build *build)
{
	while (votes && votes->build != build)
		votes = votes->next;
	return votes;
}

static const char *verdict(const struct votes *v)
{
	return v && v->misfit > v->fit ? v->why : NULL;
}

const char *votes_misfit(struct votes *votes, const struct lb_build *build)
{
	return verdict(find(votes, build));
}

bool votes_add(struct votes **votes, const struct lb_build *build, const char *misfit)
{
	struct votes *v = find(*votes, build);
	const char *before = verdict(v);

	if (!v) {
		v = calloc(1, sizeof(*v));
		if (!v)
			return false; /* others will vote */
		v->build = build;
		v->next = *votes;
		*votes = v;
	}
	v->fit += !misfit;
	v->misfit += misfit != NULL;
	if (!v->why)
		v->why = misfit;
	return before != verdict(v);
}

// SPDX-License-Identifier: BSD-2-Clause
#include "narrow.h"

int narrow_of_options(const struct options *opts, struct narrow *out, struct error *err)
{
	*out = (struct narrow){
		.exes = &opts->exes,
		.comms = &opts->comms,
		.uids = opts->users,
		.nuids = opts->nusers,
	};
	return narrow_set_cgroups(out, &opts->cgroups, err);
}

// SPDX-License-Identifier: BSD-2-Clause
#include "calls.h"

#include <errno.h>

int call_probes_add(struct call_probes *probes, const struct call_probe *probe)
{
	if (probes->n == CALL_PROBES)
		return -ENOTSUP;
	probes->at[probes->n++] = *probe;
	return 0;
}

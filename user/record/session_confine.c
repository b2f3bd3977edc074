// SPDX-License-Identifier: BSD-2-Clause
/* A recording gives up its rights when all is open and the command runs: it reads no foreign file or
 * memory for a profile before. */
#include <errno.h>

#include "base/caps.h"
#include "base/confine.h"
#include "session_priv.h"

/* Linux 5.17 and 5.18: kernel/bpf/syscall.c, __sys_bpf(), where unprivileged_bpf_disabled is set. */
static bool maps_need_rights(const struct session *s)
{
	uint64_t status_counts[LB_STATUS__MAX];
	bool need;

	if (caps_in_effect(CAPS_BPF, false))
		return true;
	need = loader_status_counts(s->loader, status_counts) == -EPERM;
	return caps_in_effect(CAPS_BPF, true) || need;
}

int session_confine(const struct session *s, struct error *err)
{
	unsigned uses = s->confine | USE_TARGETS;

	if (!s->targets.everywhere)
		uses |= USE_CHILDREN;
	if (s->command)
		uses |= USE_COMMAND;
	if (maps_need_rights(s))
		uses |= USE_OLD_MAPS;
	return confine(uses, err);
}

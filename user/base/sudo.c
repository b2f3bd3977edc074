// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "sudo.h"

static bool env_id(const char *name, uint32_t *id)
{
	const char *text = getenv(name);
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= UINT32_MAX)
		return false;
	*id = value;
	return true;
}

bool sudo_caller(uint32_t *uid, uint32_t *gid)
{
	return env_id("SUDO_UID", uid) && env_id("SUDO_GID", gid);
}

// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sudo.h"

/* UINT32_MAX is no ID: setresuid(2) and chown(2) take it for "unchanged". */
static int env_id(const char *name, uint32_t *id, struct error *err)
{
	static const char remedy[] = "run luabpf by sudo, which sets both; or unset SUDO_UID and "
				     "SUDO_GID, to do all as root";
	const char *text = getenv(name);
	unsigned long value = 0;
	char *end = NULL;

	if (text && *text >= '0' && *text <= '9') {
		errno = 0;
		value = strtoul(text, &end, 10);
	}
	if (!end || errno || *end || value >= UINT32_MAX) {
		if (text)
			error_set(err, -EINVAL, "%s: \"%.64s\" is no user or group ID", name, text);
		else
			error_set(err, -EINVAL, "%s: not set", name);
		return error_remedy(err, -EINVAL, "%s", remedy);
	}
	*id = value;
	return 0;
}

int sudo_caller(struct sudo_caller *caller, struct error *err)
{
	struct sudo_caller found;
	int r;

	if (geteuid() || (!getenv("SUDO_UID") && !getenv("SUDO_GID")))
		return 0;
	r = env_id("SUDO_UID", &found.uid, err);
	if (!r)
		r = env_id("SUDO_GID", &found.gid, err);
	if (r)
		return r;
	*caller = found;
	return 1;
}

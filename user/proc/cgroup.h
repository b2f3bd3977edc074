/* SPDX-License-Identifier: BSD-2-Clause */
/* Which container or systemd unit a process belongs to, from the path of its cgroup. */
#ifndef PROC_CGROUP_H
#define PROC_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"

/*
 * Foreign: a user who may make a cgroup chooses its name. A unit has no runtime; a process of a pod and
 * of none of its containers has no id; one of neither a container nor a unit has nothing.
 */
struct cgroup {
	const char
		*runtime; /* "docker", "containerd", "podman", "cri-o", "kubernetes", "container" */
	char id[256];	  /* the container's, or the unit's name: "foo.service" */
	char pod[40];	  /* the UID of the Kubernetes pod */
	char path[2048];  /* of the cgroup, truncated */
};

/*
 * Parses /proc/PID/cgroup, version 1 or 2: the innermost container, or else the systemd unit. The
 * path is that of version 2. If version 2 is not mounted or its path is the root, it is that of the
 * hierarchy which shows the container, else of the first one.
 */
void cgroup_parse(const char *text, size_t len, struct cgroup *out);

/* -ESRCH, -ENOMEM: `out` has nothing. */
int cgroup_of(pid_t pid, struct cgroup *out);

/* Appends "docker:0123456789ab", "pod:UID" or "foo.service", as text_put_utf8() does. */
void cgroup_put(const struct cgroup *cgroup, struct text *out);

#endif

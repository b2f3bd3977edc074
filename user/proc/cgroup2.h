/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cgroups of version 2 by their paths, which are those of /proc/PID/cgroup: "/system.slice/x.service",
 * and "/" is the root of all that this process can see.
 */
#ifndef PROC_CGROUP2_H
#define PROC_CGROUP2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define CGROUP2_PATH 4096 /* bytes that hold any */

/*
 * Finds where the file system is mounted whose root is that of the paths: inside of a cgroup namespace one that was mounted
 * outside has another. -ENOENT: err says so.
 */
int cgroup2_mount(char buf[CGROUP2_PATH], struct error *err);

/*
 * Returns in *out, which the caller frees, the cgroup that a user names: by its path, or by its
 * directory in the file system. -ENOENT, -ENOTDIR: not a cgroup; -EACCES: no permission.
 */
int cgroup2_find(const char *mount, const char *name, char **out);

/* The cgroup of a process. -ESRCH: it has ended, or is in none. */
int cgroup2_of(pid_t pid, char buf[CGROUP2_PATH]);

/* Returns the kernel's id of a cgroup; 0 if the path is not a cgroup (any more). */
uint64_t cgroup2_id(const char *mount, const char *path);

/* True if the path is this cgroup or one below it. */
bool cgroup2_is_below(const char *path, const char *cgroup);

#endif

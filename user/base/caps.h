/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's privileges: its capabilities, its user namespace, its limit of open files.
 */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
	CAPS_BPF = 1,
	CAPS_PERFMON = 2,
	CAPS_SYS_PTRACE = 4,
	CAPS_ALL = CAPS_BPF | CAPS_PERFMON | CAPS_SYS_PTRACE, /* always needed */
	CAPS_DAC_READ_SEARCH = 8,
	CAPS_CHECKPOINT_RESTORE = 16,
	/* for unreadable or deleted executables */
	CAPS_FILES = CAPS_DAC_READ_SEARCH | CAPS_CHECKPOINT_RESTORE,
	CAPS_SETUID = 32,
	CAPS_SETGID = 64,
	/* for source files of other users' processes */
	CAPS_SOURCES = CAPS_SETUID | CAPS_SETGID,
	CAPS_SYS_ADMIN = 128,
};

/* Returns those of `wanted` that are not in effect, or -errno of capget(2). */
int caps_missing(unsigned wanted);

/* Writes "CAP_BPF, CAP_PERFMON" and returns buf. 128 bytes hold all names. */
const char *caps_names(unsigned which, char *buf, size_t size);

/* Clears or sets capabilities in the effective set, with CAP_SYS_ADMIN, which implies CAP_BPF,
 * CAP_PERFMON and CAP_CHECKPOINT_RESTORE. -errno. */
int caps_in_effect(unsigned which, bool effective);

/* True if an event needs CAP_SYS_ADMIN: perf_event_paranoid is 3 or more, as by default on Debian. */
bool caps_events_are_admins(void);

/*
 * Keeps the capabilities of these uses (uses.h) that are permitted, and puts them in effect. Drops
 * all others for good, from every set. 0 or -errno, with err.
 */
int caps_keep(unsigned uses, struct error *err);

/* Returns how to get capabilities that are missing. */
const char *caps_remedy(void);

/* True in a user namespace, as in a rootless container: no capability permits BPF there. */
bool caps_in_container(void);

/* Raises the limit of open files to the hard limit: each thread of a target takes up to three. */
void caps_more_files(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process may do: capabilities, whether they count outside its own container, open files.
 */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CAPS_BPF = 1,
	CAPS_PERFMON = 2,
	CAPS_SYS_PTRACE = 4,
	CAPS_ALL = 7,
};

/* Which of `wanted` are not in effect; -errno when the kernel does not tell. */
int caps_missing(unsigned wanted);

/* "CAP_BPF, CAP_PERFMON"; returns buf. 64 bytes hold all. */
const char *caps_names(unsigned which, char *buf, size_t size);

/* In a user namespace of its own, as in a rootless container: what BPF asks for is not there. */
bool caps_in_container(void);

/* As many open files as the hard limit allows: each thread of a target takes up to three. */
void caps_more_files(void);

#endif

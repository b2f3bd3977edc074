/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child process that loads the programs of VM families, on request. It keeps the rights to load BPF
 * programs, reads nothing but requests, and has no other open files than it needs: the recording, which
 * reads foreign memory and files, gives up these rights.
 */
#ifndef BPF_FAMILIES_H
#define BPF_FAMILIES_H

#include <stddef.h>
#include <stdint.h>

struct families;

/*
 * load is called in the child, with the number of a family: 0 or -errno. keep: its open files. The child
 * ends with us, or when it has loaded all of `most` (LB_FAMILY_BIT()s).
 */
struct families_options {
	int (*load)(void *arg, uint32_t family);
	void *arg;
	const int *keep;
	size_t nkeep;
	uint32_t most;
};
int families_start(const struct families_options *options, struct families **out);
void families_free(struct families **families);

/* Requests those that were not requested before. */
void families_request(struct families *families, uint32_t bits);

/* Waits until those that were requested are loaded. 0, or -errno of the first that failed. */
int families_wait(struct families *families);

#endif

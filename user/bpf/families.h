/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child process for each VM family, which loads its program on request. They keep the rights to load BPF
 * programs, read nothing but the request, and have no other open files than they need: the recording, which
 * reads foreign memory and files, gives up these rights.
 */
#ifndef BPF_FAMILIES_H
#define BPF_FAMILIES_H

#include <stddef.h>
#include <stdint.h>

struct families;

/*
 * load is called in the child of a family: 0 or -errno. keep: its open files. A child ends when it has loaded
 * its program, or with us.
 */
struct families_options {
	int (*load)(void *arg, uint32_t family);
	void *arg;
	const int *keep;
	size_t nkeep;
	uint32_t families; /* LB_FAMILY_BIT()s */
};
int families_start(const struct families_options *options, struct families **out);
void families_free(struct families **families);

/* Requests those that were not requested before: they are needed. */
void families_request(struct families *families, uint32_t bits);

/* The same of those that may be needed later: families_wait() does not wait for them. */
void families_prepare(struct families *families, uint32_t bits);

/* Waits until those that are needed are loaded, or one has failed. 0, or -errno of that, in later calls, too. */
int families_wait(struct families *families);

/* Takes the results that are there and ends those children, without waiting for others. */
void families_reap(struct families *families);

#endif

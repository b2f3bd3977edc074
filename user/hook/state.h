/* SPDX-License-Identifier: BSD-2-Clause */
/* A state's file, as far as it was read. */
#ifndef HOOK_STATE_H
#define HOOK_STATE_H

#include <stdbool.h>

#include "base/hash.h"
#include "hook.h"

struct hook_state {
	char name[32]; /* of its file */
	struct hook_header header;
	bool broken;
	struct hook_func *funcs;
	uint32_t nfuncs;
	char *bytes;
	uint32_t nbytes;
	uint64_t tail; /* events that were read */
	void *data;
	UT_hash_handle hh; /* by name */
};

/*
 * Reads what is new in the file: header, functions, bytes; events into `fn`, unless it is NULL.
 * Returns fn's error or -ENOMEM; what is wrong with the file only sets `broken`. *budget: bytes that
 * functions and their texts may still take; a file that would take more is broken.
 */
int hook_state_read(struct hook_state *state, int fd, hook_events_fn fn, void *arg,
		    uint64_t *budget);

void hook_state_free(struct hook_state *state);

#endif

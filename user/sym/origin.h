/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The labels of a process's samples that are the same for all of them: its executable, its cgroup,
 * the container that this belongs to. They are read once for each image of the process.
 */
#ifndef SYM_ORIGIN_H
#define SYM_ORIGIN_H

#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>

#include "base/text.h"
#include "prof/prof.h"

struct image_origin {
	struct text exe, cgroup, container; /* readable; "": not known, or none */
	uint32_t ids[LB_BUILDS]; /* in the profile, by the VM's build; 0: not there yet */
};

void origin_read(struct image_origin *origin, pid_t pid);
void origin_free(struct image_origin *origin);

/* A fork runs its parent's executable, and has its cgroup if it has ended before that was read. */
void origin_fork(struct image_origin *origin, const struct image_origin *parent);

/* The id of prof_origin_id() of a VM of this process. build: its index; vm: its release. */
int origin_id(struct image_origin *origin, struct prof *prof, uint32_t build, const char *vm,
	      uint32_t *id);

/* The profile is another: its ids are not known. */
void origin_forget(struct image_origin *origin);

#endif

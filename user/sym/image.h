/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of one image of a process, which exec makes and the next exec or its end destroys: its
 * mappings, prototypes, the names of its VMs' functions, compiled code, the frames that were made of
 * these, and the labels of all of its samples. Who has the process has its image: nothing here is looked up by pid.
 */
#ifndef SYM_IMAGE_H
#define SYM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image;
struct symbolizer;

/* Makes the image of the process that has this pid now. The symbolizer outlives it. -ENOMEM. */
int image_new(struct symbolizer *symbolizer, pid_t pid, struct image **out);
void image_free(struct image **image);

/*
 * Reads its mappings, and the labels of its samples, while it lives: for its first sample at the
 * latest. Returns true unless that was done before.
 */
bool image_learn(struct image *image);

/* A fork of parent's has the same mappings and labels, though it may have ended before they were read. */
void image_fork(struct image *image, struct image *parent);

/* The process runs another image by now: what is known counts for the rest of this one's samples. */
void image_ended(struct image *image);

/* protos_share(), of a process that lives. */
bool image_share(struct image *image);

/* True if not all of this round's records were read. */
void image_left(struct image *image);

/*
 * Another profile begins (symbolizer_begin()): forgets the frames, whose ids are the old one's, and
 * the prototypes that no sample has shown since the last call. fn is called with the address of
 * each of these, as BPF is to send it again.
 */
typedef void image_evicted_fn(void *arg, uint64_t proto);
void image_begin_profile(struct image *image, image_evicted_fn *fn, void *arg);

struct image_sizes {
	size_t prototypes, frames;
};
struct image_sizes image_sizes(const struct image *image);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the fuzzers over built images: the input, damage and its undoing, checks of a walk. */
#ifndef LIB_FUZZ_WALK_H
#define LIB_FUZZ_WALK_H

#include <stddef.h>
#include <stdint.h>

#include <unwind/unwind.h>

#include "base/mem_image.h"
#include "walk_host.h"

struct fuzz_input {
	const uint8_t *p;
	size_t left;
};

/* The next size bytes, at most 8, as a little-endian number; what is missing of them is 0. */
uint64_t fuzz_take(struct fuzz_input *in, size_t size);

/*
 * Where to damage size bytes in an object of len; `at` chooses. Bytes beyond the first KiB (stacks)
 * are reached in words.
 */
uint32_t fuzz_offset(uint32_t at, uint32_t len, size_t size);

/*
 * The bytes that an input changed in an image. They are put back after the run, so that an image is
 * built once and not for each input.
 */
#define FUZZ_CHANGES 1024 /* more than an input of libFuzzer's default length can ask for */
struct fuzz_undo {
	struct {
		uint8_t *at;
		uint64_t was;
		size_t size;
	} change[FUZZ_CHANGES];
	size_t n;
};

#define SCENES_MAX 512 /* of a walker; a fuzzer aborts when there are more */

/* Writes the low size bytes of value, at most 8, unless the log is full. */
void fuzz_change(struct fuzz_undo *undo, void *at, uint64_t value, size_t size);

/* Takes all changes back, the last one first. */
void fuzz_undo(struct fuzz_undo *undo);

/*
 * Keeps the first `used` bytes of the range of img whose bytes are *bytes, which may move. A built
 * image that is kept for all inputs takes no more memory than its objects.
 */
void fuzz_trim(struct mem_image *img, uint8_t **bytes, size_t used);

/* Memory of which nothing fails, or all from a read on that touches a place: `choice`, a byte. */
struct fuzz_mem {
	struct mem_failing mem; /* refers to the fields below: do not copy */
	uint32_t reads;
	uint64_t where;
};

void fuzz_mem_init(struct fuzz_mem *m, const struct lb_mem *under, uint32_t choice);

/*
 * Aborts unless the walk ended with a reason, and each of its frames could be sent: one of kinds,
 * bits 1 << LB_FRAME_LUA and so on, with none but these flags.
 */
void fuzz_check_walk(const struct lb_walk *w, uint32_t kinds, uint32_t flags);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory image: address ranges with copies of their bytes, from BPF's records or from a test.
 * And memory in two layers: a read that the upper layer cannot serve goes to the lower one.
 */
#ifndef BASE_MEM_IMAGE_H
#define BASE_MEM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <unwind/mem.h>

struct mem_range {
	uint64_t addr;
	size_t len;
	unsigned char *bytes;
};

/* Zero-initialise .ranges and .n with mem_image_init(); ranges own their bytes. */
struct mem_image {
	struct lb_mem mem; /* hand &img.mem to mem_read() */
	struct mem_range *ranges;
	size_t n;
};

void mem_image_init(struct mem_image *img);

/* Copies a range in. Where ranges overlap, reads see the one that was added first. */
int mem_image_add(struct mem_image *img, uint64_t addr, const void *bytes, size_t len);

/* Frees all ranges; the image can be filled again. */
void mem_image_clear(struct mem_image *img);

struct mem_layers {
	struct lb_mem mem;
	const struct lb_mem *upper, *lower; /* borrowed; NULL: reads fail */
};

/* A read that upper cannot serve whole is served by lower. */
void mem_layers_init(struct mem_layers *l, const struct lb_mem *upper, const struct lb_mem *lower);

#endif

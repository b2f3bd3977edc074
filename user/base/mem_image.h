/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory made of bytes in hand: what BPF shipped, what a test built. And memory in two layers: an
 * image first, what it lacks from elsewhere.
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

/* Zero-initialise .ranges, .n, .cap with mem_image_init(); ranges own their bytes. */
struct mem_image {
	struct lb_mem mem; /* hand &img.mem to mem_read() */
	struct mem_range *ranges;
	size_t n, cap;
};

void mem_image_init(struct mem_image *img);

/* Copies bytes in. Where ranges overlap, the one that was added first is seen. */
int mem_image_add(struct mem_image *img, uint64_t addr, const void *bytes, size_t len);

/* Forgets all ranges and frees them; the image can be filled again. */
void mem_image_clear(struct mem_image *img);

struct mem_layers {
	struct lb_mem mem;
	const struct lb_mem *upper, *lower; /* borrowed; NULL: nothing there */
};

/* A read that upper cannot serve whole is served by lower. */
void mem_layers_init(struct mem_layers *l, const struct lb_mem *upper, const struct lb_mem *lower);

#endif

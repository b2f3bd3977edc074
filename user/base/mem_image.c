/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mem_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* Returns the first added of the ranges that hold addr, or NULL. */
static const struct mem_range *range_at(const struct mem_image *img, uint64_t addr)
{
	size_t i;

	for (i = 0; i < img->n; i++)
		if (addr - img->ranges[i].addr < img->ranges[i].len)
			return &img->ranges[i];
	return NULL;
}

/* Returns how many bytes from addr on, up to size, are read from r: up to the next range that was
 * added before r. */
static size_t seen_bytes(const struct mem_image *img, const struct mem_range *r, uint64_t addr,
			 size_t size)
{
	size_t n = r->len - (addr - r->addr);
	const struct mem_range *o;

	if (n > size)
		n = size;
	for (o = img->ranges; o < r; o++)
		if (o->len && o->addr > addr && o->addr - addr < n)
			n = o->addr - addr;
	return n;
}

static int image_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_image *img = (const struct mem_image *)mem;
	unsigned char *to = dst;

	while (size) {
		const struct mem_range *r = range_at(img, addr);
		size_t n;

		if (!r)
			return -EFAULT;
		n = seen_bytes(img, r, addr, size);
		memcpy(to, r->bytes + (addr - r->addr), n);
		to += n;
		addr += n;
		size -= (__u32)n;
	}
	return 0;
}

void mem_image_init(struct mem_image *img)
{
	*img = (struct mem_image){.mem.read = image_read};
}

int mem_image_add(struct mem_image *img, uint64_t addr, const void *bytes, size_t len)
{
	unsigned char *copy;

	if (!len)
		return 0;
	if (addr + len < addr)
		return -EINVAL;
	if (array_grow(&img->ranges, img->n, sizeof(*img->ranges)))
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	img->ranges[img->n++] = (struct mem_range){.addr = addr, .len = len, .bytes = copy};
	return 0;
}

void mem_image_clear(struct mem_image *img)
{
	size_t i;

	for (i = 0; i < img->n; i++)
		free(img->ranges[i].bytes);
	free(img->ranges);
	mem_image_init(img);
}

static int layers_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_layers *l = (const struct mem_layers *)mem;

	if (l->upper && !mem_read(l->upper, dst, size, addr))
		return 0;
	return l->lower ? mem_read(l->lower, dst, size, addr) : -EFAULT;
}

void mem_layers_init(struct mem_layers *l, const struct lb_mem *upper, const struct lb_mem *lower)
{
	*l = (struct mem_layers){.mem.read = layers_read, .upper = upper, .lower = lower};
}

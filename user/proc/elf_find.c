/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds bytes among a file's constants: linear search, in chunks that overlap. */
#include "elf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CHUNK (256u << 10)
#define MAX_BYTES 64

struct byte_search {
	struct elf_file *elf;
	const uint8_t *bytes;
	size_t len;
	uint8_t *buf; /* of `size` bytes */
	size_t size;
};

/* memmem() by memchr(): fast if the first byte is rare */
static const uint8_t *find_bytes(const uint8_t *p, size_t n, const uint8_t *bytes, size_t len)
{
	const uint8_t *end = p + n - len + 1;

	for (; p < end && (p = memchr(p, *bytes, (size_t)(end - p))); p++)
		if (p[len - 1] == bytes[len - 1] && !memcmp(p, bytes, len))
			return p;
	return NULL;
}

/* Searches one segment, from vaddr to its end. */
static int find_in(const struct byte_search *f, const struct elf_load *l, uint64_t vaddr,
		   uint64_t *found)
{
	uint64_t end = l->vaddr + l->filesz;

	while (end - vaddr >= f->len) {
		size_t n = end - vaddr < f->size ? (size_t)(end - vaddr) : f->size;
		const uint8_t *at;

		if (elf_pread(f->elf, f->buf, n, l->offset + (vaddr - l->vaddr)))
			return elf_exceeded(f->elf) ? -EFBIG : -ENOENT;
		at = find_bytes(f->buf, n, f->bytes, f->len);
		if (at) {
			*found = vaddr + (uint64_t)(at - f->buf);
			return 0;
		}
		vaddr += n - f->len + 1;
	}
	return -ENOENT;
}

/* Returns the size of the largest segment, at most CHUNK. */
static size_t chunk_size(const struct elf_file *elf)
{
	uint64_t size = 0;
	size_t i;

	for (i = 0; i < elf->nloads; i++)
		if (elf->loads[i].filesz > size)
			size = elf->loads[i].filesz;
	return size < CHUNK ? (size_t)size : CHUNK;
}

int elf_find_bytes(struct elf_file *elf, uint64_t from, const void *bytes, size_t len,
		   uint64_t *vaddr)
{
	size_t size = chunk_size(elf);
	uint8_t *buf __free = malloc(size + !size);
	struct byte_search f = {elf, bytes, len, buf, size};
	uint64_t best = UINT64_MAX;
	int r, err = -ENOENT;
	size_t i;

	if (!buf)
		return -ENOMEM;
	if (!len || len > MAX_BYTES)
		return -EINVAL;
	for (i = 0; i < elf->nloads; i++) {
		const struct elf_load *l = &elf->loads[i];
		uint64_t begin = from > l->vaddr ? from : l->vaddr, at;

		/* linkers that keep constants apart from text put a segment of them first */
		if (l->write || (l->exec && !elf->loads[0].exec))
			continue;
		if (begin - l->vaddr >= l->filesz || begin >= best)
			continue;
		r = find_in(&f, l, begin, &at);
		if (!r && at < best)
			best = at;
		if (r == -EFBIG)
			err = r;
	}
	if (best == UINT64_MAX)
		return err;
	*vaddr = best;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads an ELF file by offset, by address, by section; each read is charged to its budget. */
#include "elf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pager.h"
#include "base/reader.h"

#define PIECE (64u << 10)
#define READ_STEPS 256 /* cost of a system call, in bytes */

bool elf_spend(struct elf_file *elf, uint64_t steps)
{
	return budget_spend(&elf->work, steps);
}

void elf_charge(struct elf_file *elf, struct budget *of)
{
	elf->work.of = of;
}

const char *elf_exceeded(const struct elf_file *elf)
{
	return budget_used_up(&elf->work);
}

static ssize_t read_some(struct elf_file *elf, void *dst, size_t size, uint64_t offset)
{
	ssize_t n;

	if (!elf->apart) {
		n = pread(elf->fd, dst, size, (off_t)offset);
		return n < 0 ? -errno : n;
	}
	n = elf->fd < 0 ? -EIO : reader_pread(elf->fd, dst, size, offset);
	if (n == -ETIMEDOUT) {
		pager_no_answer(elf->dev);
		close(elf->fd);
		elf->fd = -1;
		elf->work.remaining = 0;
	}
	return n;
}

int elf_pread(struct elf_file *elf, void *dst, size_t size, uint64_t offset)
{
	uint8_t *to = dst;

	if (offset > elf->len || size > elf->len - offset)
		return -EIO;
	if (!elf_spend(elf, size + READ_STEPS))
		return -EDQUOT;
	if (elf->bytes) {
		memcpy(dst, elf->bytes + offset, size);
		return 0;
	}
	while (size) {
		ssize_t n = read_some(elf, to, size, offset);

		if (n == -EINTR)
			continue;
		if (n <= 0) /* truncated since it was opened */
			return n < 0 ? (int)n : -EIO;
		to += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

const struct elf_load *elf_load_at(const struct elf_file *elf, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < elf->nloads; i++)
		if (vaddr - elf->loads[i].vaddr < elf->loads[i].filesz)
			return &elf->loads[i];
	return NULL;
}

int elf_read(struct elf_file *elf, uint64_t vaddr, void *dst, size_t size)
{
	const struct elf_load *l = elf_load_at(elf, vaddr);

	if (!l || size > l->filesz - (vaddr - l->vaddr))
		return -EFAULT;
	return elf_pread(elf, dst, size, l->offset + (vaddr - l->vaddr));
}

int elf_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset)
{
	const struct elf_load *l = elf_load_at(elf, vaddr);

	if (!l)
		return -ENOENT;
	*offset = l->offset + (vaddr - l->vaddr);
	return 0;
}

int elf_read_rest(struct elf_file *elf, uint64_t vaddr, size_t max, uint8_t **bytes, size_t *len)
{
	const struct elf_load *l = elf_load_at(elf, vaddr);
	uint8_t *buf __free = NULL;
	uint64_t n, offset;
	int err;

	if (!l)
		return -EFAULT;
	offset = l->offset + (vaddr - l->vaddr);
	n = l->filesz - (vaddr - l->vaddr);
	if (offset >= elf->len)
		return -EIO;
	if (n > elf->len - offset)
		n = elf->len - offset;
	if (n > max)
		n = max;
	buf = malloc(n);
	if (!buf)
		return -ENOMEM;
	err = elf_pread(elf, buf, n, offset);
	if (err)
		return err;
	*bytes = TAKE_PTR(buf);
	*len = n;
	return 0;
}

const Elf64_Shdr *elf_section(const struct elf_file *elf, uint32_t type, const Elf64_Shdr *from)
{
	const Elf64_Shdr *sh = from ? from : elf->sections;

	for (; sh && sh < elf->sections + elf->nsections; sh++)
		if (sh->sh_type == type)
			return sh;
	return NULL;
}

/* Returns the number of a section's bytes that are in the file. */
static uint64_t section_size(const struct elf_file *elf, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || sh->sh_offset >= elf->len)
		return 0;
	return sh->sh_size < elf->len - sh->sh_offset ? sh->sh_size : elf->len - sh->sh_offset;
}

int elf_each_entry(struct elf_file *elf, const Elf64_Shdr *sh, size_t size,
		   int (*fn)(void *arg, const void *entry), void *arg)
{
	uint64_t left = section_size(elf, sh) / size * size, at = sh->sh_offset;
	size_t piece = left < PIECE ? (size_t)left : PIECE / size * size, i;
	uint8_t *buf __free = malloc(piece + 1);
	int r = 0;

	if (!buf)
		return -ENOMEM;
	for (; left && !r; left -= piece, at += piece) {
		if (piece > left)
			piece = (size_t)left;
		r = elf_pread(elf, buf, piece, at);
		for (i = 0; i < piece && !r; i += size)
			r = fn(arg, buf + i);
	}
	return r;
}

int elf_read_section(struct elf_file *elf, const Elf64_Shdr *sh, size_t max, char **bytes,
		     size_t *len)
{
	uint64_t n = section_size(elf, sh);
	char *buf __free = NULL;
	int err;

	if (n > max)
		return -E2BIG;
	buf = malloc(n + 1);
	if (!buf)
		return -ENOMEM;
	err = elf_pread(elf, buf, n, sh->sh_offset);
	if (err)
		return err;
	buf[n] = '\0';
	*bytes = TAKE_PTR(buf);
	*len = n;
	return 0;
}

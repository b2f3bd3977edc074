/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAX_PHDRS 512
#define PAGE 4096u

int elf_pread(const struct elf_file *elf, void *dst, size_t size, uint64_t offset)
{
	uint8_t *to = dst;

	if (elf->fd < 0) {
		if (offset > elf->len || size > elf->len - offset)
			return -EIO;
		memcpy(dst, elf->bytes + offset, size);
		return 0;
	}
	while (size) {
		ssize_t n = pread(elf->fd, to, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		to += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static void note_phdr(struct elf_file *elf, const GElf_Phdr *ph)
{
	switch (ph->p_type) {
	case PT_LOAD:
		if (ph->p_filesz && ph->p_vaddr + ph->p_filesz > ph->p_vaddr &&
		    ph->p_offset + ph->p_filesz > ph->p_offset)
			elf->loads[elf->nloads++] = (struct elf_load){.vaddr = ph->p_vaddr,
								      .offset = ph->p_offset,
								      .filesz = ph->p_filesz,
								      .exec = ph->p_flags & PF_X,
								      .write = ph->p_flags & PF_W};
		break;
	case PT_GNU_EH_FRAME:
		elf->eh_frame_hdr = ph->p_vaddr;
		elf->eh_frame_hdr_size = ph->p_filesz;
		break;
	case PT_INTERP:
		elf->interp = true;
		break;
	default:
		break;
	}
}

static int read_headers(struct elf_file *elf)
{
	GElf_Ehdr eh;
	size_t n, i;

	if (elf_kind(elf->elf) != ELF_K_ELF || gelf_getclass(elf->elf) != ELFCLASS64 ||
	    !gelf_getehdr(elf->elf, &eh) || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	elf->type = eh.e_type;
	if (elf_getphdrnum(elf->elf, &n))
		return -ENOEXEC;
	if (n > MAX_PHDRS)
		n = MAX_PHDRS;
	elf->loads = calloc(n ? n : 1, sizeof(*elf->loads));
	if (!elf->loads)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf->elf, (int)i, &ph))
			note_phdr(elf, &ph);
	}
	return 0;
}

static int open_common(struct elf_file *elf, struct elf_file **out)
{
	int err;

	if (!elf->elf)
		return -ENOEXEC;
	err = read_headers(elf);
	if (!err)
		*out = elf;
	return err;
}

int elf_open_fd(int fd, struct elf_file **out)
{
	struct elf_file *elf __cleanup(elf_close) = calloc(1, sizeof(*elf));
	struct stat st;
	int err;

	if (!elf)
		return -ENOMEM;
	elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (elf->fd < 0 || fstat(elf->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	elf->elf = elf_begin(elf->fd, ELF_C_READ, NULL);
	err = open_common(elf, out);
	if (!err)
		elf = NULL;
	return err;
}

int elf_open(const char *path, struct elf_file **out)
{
	/* O_NONBLOCK: the path may be a FIFO that nobody writes to */
	int fd __close = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : elf_open_fd(fd, out);
}

int elf_open_bytes(const void *bytes, size_t len, struct elf_file **out)
{
	struct elf_file *elf __cleanup(elf_close) = calloc(1, sizeof(*elf));
	int err;

	if (!elf)
		return -ENOMEM;
	elf->fd = -1;
	elf->owned = malloc(len ? len : 1);
	if (!elf->owned)
		return -ENOMEM;
	memcpy(elf->owned, bytes, len);
	elf->bytes = elf->owned;
	elf->len = len;
	elf_version(EV_CURRENT);
	elf->elf = elf_memory(elf->owned, len);
	err = open_common(elf, out);
	if (!err)
		elf = NULL;
	return err;
}

void elf_close(struct elf_file **elf)
{
	if (!*elf)
		return;
	elf_end((*elf)->elf);
	if ((*elf)->fd >= 0)
		close((*elf)->fd);
	free((*elf)->owned);
	free((*elf)->loads);
	free((*elf)->syms);
	free(*elf);
	*elf = NULL;
}

static const struct elf_load *load_at(const struct elf_file *elf, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < elf->nloads; i++)
		if (vaddr - elf->loads[i].vaddr < elf->loads[i].filesz)
			return &elf->loads[i];
	return NULL;
}

int elf_read(struct elf_file *elf, uint64_t vaddr, void *dst, size_t size)
{
	const struct elf_load *l = load_at(elf, vaddr);

	if (!l || size > l->filesz - (vaddr - l->vaddr))
		return -EFAULT;
	return elf_pread(elf, dst, size, l->offset + (vaddr - l->vaddr));
}

int elf_offset(struct elf_file *elf, uint64_t vaddr, uint64_t *offset)
{
	const struct elf_load *l = load_at(elf, vaddr);

	if (!l)
		return -ENOENT;
	*offset = l->offset + (vaddr - l->vaddr);
	return 0;
}

static int file_size(const struct elf_file *elf, uint64_t *size)
{
	struct stat st;

	if (elf->fd < 0) {
		*size = elf->len;
		return 0;
	}
	if (fstat(elf->fd, &st))
		return -errno;
	*size = (uint64_t)st.st_size;
	return 0;
}

int elf_read_rest(struct elf_file *elf, uint64_t vaddr, size_t max, uint8_t **bytes, size_t *len)
{
	const struct elf_load *l = load_at(elf, vaddr);
	uint8_t *buf __free = NULL;
	uint64_t size = 0, n, offset;
	int err = file_size(elf, &size);

	if (err)
		return err;
	if (!l)
		return -EFAULT;
	offset = l->offset + (vaddr - l->vaddr);
	n = l->filesz - (vaddr - l->vaddr);
	if (offset >= size)
		return -EIO;
	if (n > size - offset)
		n = size - offset;
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

/*
 * Segments are mapped in whole pages, so that a page at a border of two is mapped with both. The
 * segment that begins on the mapping's first page is meant, else the one that spans it.
 */
int elf_bias(struct elf_file *elf, uint64_t map_start, uint64_t map_offset, uint64_t *bias)
{
	const struct elf_load *found = NULL;
	bool begins = false;
	size_t i;

	for (i = 0; i < elf->nloads; i++) {
		const struct elf_load *l = &elf->loads[i];
		uint64_t first = l->offset & ~(uint64_t)(PAGE - 1);

		if (map_offset < first || map_offset >= l->offset + l->filesz)
			continue;
		if (!found || (map_offset == first && (!begins || l->exec))) {
			found = l;
			begins = map_offset == first;
		}
	}
	if (!found)
		return -ENOENT;
	*bias = map_start - (found->vaddr - found->offset + map_offset);
	return 0;
}

bool elf_is_executable(struct elf_file *elf)
{
	return elf->interp || elf->type == ET_EXEC;
}

static int find_note(Elf_Data *data, uint8_t *id, size_t *len)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr nh;

	while (at < data->d_size && (next = gelf_getnote(data, at, &nh, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;

		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    !memcmp(bytes + name, "GNU", 4)) {
			*len = nh.n_descsz < ELF_BUILD_ID_MAX ? nh.n_descsz : ELF_BUILD_ID_MAX;
			memcpy(id, bytes + desc, *len);
			return 0;
		}
		at = next;
	}
	return -ENOENT;
}

int elf_build_id(struct elf_file *elf, uint8_t id[ELF_BUILD_ID_MAX], size_t *len)
{
	size_t n, i;

	if (elf_getphdrnum(elf->elf, &n))
		return -ENOEXEC;
	for (i = 0; i < n && i < MAX_PHDRS; i++) {
		GElf_Phdr ph;
		Elf_Data *data;

		if (!gelf_getphdr(elf->elf, (int)i, &ph) || ph.p_type != PT_NOTE ||
		    ph.p_filesz > PAGE * 16)
			continue;
		data = elf_getdata_rawchunk(elf->elf, (int64_t)ph.p_offset, ph.p_filesz,
					    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (data && data->d_buf && !find_note(data, id, len))
			return 0;
	}
	return -ENOENT;
}

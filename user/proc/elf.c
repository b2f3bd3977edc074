/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAX_SEGMENTS 512
#define MAX_SECTIONS 8192
#define PAGE 4096u

/*
 * Sparse files are refused: their only use is to make the reader work. Compressing file systems
 * allocate fewer blocks than the size, and some file systems report 0.
 */
#define SPARSE_MIN (16u << 20)
#define SPARSE_RATIO 16

const char *elf_refused(int err)
{
	switch (err) {
	case -EFBIG:
		return "nearly all of it is holes (a sparse file)";
	case -E2BIG:
		return "it has more than 8192 sections";
	case -ETIMEDOUT:
		return "its file system waits for a user's daemon (FUSE)";
	default:
		return NULL;
	}
}

static void note_segment(struct elf_file *elf, const Elf64_Phdr *ph)
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
	default:
		break;
	}
}

static int read_segments(struct elf_file *elf, const Elf64_Ehdr *eh)
{
	size_t n = eh->e_phnum < MAX_SEGMENTS ? eh->e_phnum : MAX_SEGMENTS, i;
	Elf64_Phdr *segments __free = calloc(n + 1, sizeof(*segments));

	elf->loads = calloc(n + 1, sizeof(*elf->loads));
	if (!segments || !elf->loads)
		return -ENOMEM;
	if (!n)
		return 0;
	if (eh->e_phentsize != sizeof(*segments) ||
	    elf_pread(elf, segments, n * sizeof(*segments), eh->e_phoff))
		return -ENOEXEC;
	for (i = 0; i < n; i++)
		note_segment(elf, &segments[i]);
	return 0;
}

/* Section headers are optional at run time: a truncated table counts as none. */
static int read_sections(struct elf_file *elf, const Elf64_Ehdr *eh)
{
	uint64_t n = eh->e_shnum;
	Elf64_Shdr first;

	if (!eh->e_shoff || eh->e_shentsize != sizeof(first) ||
	    elf_pread(elf, &first, sizeof(first), eh->e_shoff))
		return 0;
	if (!n)
		n = first.sh_size; /* gABI: more than fit into e_shnum */
	if (n > MAX_SECTIONS)
		return -E2BIG;
	elf->sections = calloc(n + 1, sizeof(*elf->sections));
	if (!elf->sections)
		return -ENOMEM;
	if (elf_pread(elf, elf->sections, n * sizeof(*elf->sections), eh->e_shoff))
		return 0;
	elf->nsections = n;
	elf->section_names = eh->e_shstrndx == SHN_XINDEX ? first.sh_link : eh->e_shstrndx;
	return 0;
}

static int read_headers(struct elf_file *elf)
{
	Elf64_Ehdr eh;
	int err;

	elf->work = (struct budget){.remaining = ELF_WORK, .of_what = "this file"};
	if (elf_pread(elf, &eh, sizeof(eh), 0) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	err = read_segments(elf, &eh);
	return err ? err : read_sections(elf, &eh);
}

static bool is_sparse(const struct statx *st)
{
	return st->stx_size >= SPARSE_MIN && st->stx_blocks &&
	       st->stx_blocks < st->stx_size / SPARSE_RATIO / 512;
}

int elf_open_fd(int fd, struct elf_file **out)
{
	struct elf_file *elf __cleanup(elf_close) = calloc(1, sizeof(*elf));
	struct statx st;
	int err;

	if (!elf)
		return -ENOMEM;
	elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (elf->fd < 0 ||
	    statx(elf->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -ENOEXEC;
	elf->apart = fcntl(fd, F_GETFL) & O_PATH;
	elf->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	elf->len = st.stx_size;
	err = read_headers(elf);
	if (elf->fd < 0)
		err = -ETIMEDOUT;
	else if (!err && is_sparse(&st))
		err = -EFBIG;
	if (err)
		return err;
	*out = TAKE_PTR(elf);
	return 0;
}

int elf_open(const char *path, struct elf_file **out)
{
	/* O_NONBLOCK: the path may be a FIFO without a writer */
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
	err = read_headers(elf);
	if (err)
		return err;
	*out = TAKE_PTR(elf);
	return 0;
}

/* Releases the content: reads fail from now on. */
static void close_file(struct elf_file *elf)
{
	cleanup_fd(&elf->fd);
	free(elf->owned);
	elf->owned = NULL;
	elf->bytes = NULL;
	elf->len = 0;
}

int elf_keep_symbols(struct elf_file *elf)
{
	int err = elf_load_symbols(elf);

	close_file(elf);
	return err;
}

uint64_t elf_kept_bytes(const struct elf_file *elf)
{
	return sizeof(*elf) + elf->nloads * sizeof(*elf->loads) +
	       elf->nsections * sizeof(*elf->sections) + elf->nsyms * sizeof(*elf->syms) +
	       elf->names_size;
}

void elf_close(struct elf_file **elf)
{
	if (!*elf)
		return;
	close_file(*elf);
	free((*elf)->sections);
	free((*elf)->loads);
	free((*elf)->syms);
	free((*elf)->names);
	free((*elf)->lua_sym);
	free(*elf);
	*elf = NULL;
}

/*
 * Segments are mapped in whole pages, so a page at the border of two is mapped with both. Prefers
 * the segment that begins on the mapping's first page to one that spans it.
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

// SPDX-License-Identifier: BSD-2-Clause
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_SWAPPED (1ULL << 62)
#define PAGE_PRESENT (1ULL << 63)
#define ENTRIES 512
/* A larger mapping only reserves addresses, as a sanitizer's shadow does: 16 TiB. */
#define MOST_RESERVED (64ULL << 30)

struct memory_walk {
	int pagemap;
	struct budget *work;
	int (*fn)(void *arg, uint64_t start, uint64_t end);
	void *arg;
	bool *complete;
	uint64_t start, end; /* of the run so far */
};

static int end_run(struct memory_walk *p)
{
	uint64_t start = p->start, end = p->end;

	p->start = p->end = 0;
	if (start == end)
		return 0;
	if (!budget_spend(p->work, end - start)) {
		*p->complete = false;
		return 1;
	}
	return p->fn(p->arg, start, end);
}

static int add_page(struct memory_walk *p, uint64_t addr)
{
	int r = 0;

	if (addr != p->end || p->end - p->start == MEMORY_RUN) {
		r = end_run(p);
		p->start = addr;
	}
	p->end = addr + MEMORY_PAGE;
	return r;
}

static int each_page(struct memory_walk *p, uint64_t start, uint64_t end)
{
	uint64_t entries[ENTRIES];
	int r = 0;

	while (start < end && !r) {
		size_t n = (end - start) / MEMORY_PAGE < ENTRIES ? (end - start) / MEMORY_PAGE
								 : ENTRIES;
		ssize_t got = pread(p->pagemap, entries, n * sizeof(*entries),
				    (off_t)(start / MEMORY_PAGE * sizeof(*entries)));

		if (got < (ssize_t)sizeof(*entries))
			return got < 0 ? -errno : -ESRCH;
		if (!budget_spend(p->work, (uint64_t)got)) {
			*p->complete = false;
			return 1;
		}
		n = (size_t)got / sizeof(*entries);
		for (size_t i = 0; i < n && !r; i++) {
			if (entries[i] & PAGE_PRESENT)
				r = add_page(p, start + i * MEMORY_PAGE);
			else if (entries[i] & PAGE_SWAPPED)
				*p->complete = false;
		}
		start += n * MEMORY_PAGE;
	}
	return r;
}

static int open_pagemap(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

static bool is_private_memory(const char *perms)
{
	return perms[0] == 'r' && perms[1] == 'w' && perms[3] == 'p';
}

static int add_mapping(void *arg, const struct process_mapping *m)
{
	struct memory_walk *p = arg;
	int r = 0;

	if (m->end - m->start > MOST_RESERVED)
		*p->complete = false;
	else
		r = each_page(p, m->start, m->end);
	if (!r && !budget_spend(p->work, MEMORY_PAGE)) { /* there may be a million mappings */
		*p->complete = false;
		return 1;
	}
	return r;
}

int memory_each(pid_t pid, struct budget *work, int (*fn)(void *arg, uint64_t start, uint64_t end),
		void *arg, bool *complete)
{
	int pagemap __close = open_pagemap(pid);
	struct memory_walk p = {
		.pagemap = pagemap, .work = work, .fn = fn, .arg = arg, .complete = complete};
	int r;

	if (pagemap < 0)
		return pagemap;
	*complete = true;
	r = process_maps(pid, is_private_memory, add_mapping, &p);
	if (!r)
		r = end_run(&p);
	return r > 0 ? 0 : r;
}

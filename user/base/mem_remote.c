/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mem_remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/mem_vec.h"
#include "base/pager.h"
#include "base/reader.h"

#define BATCH READER_PIECES /* per system call, far below IOV_MAX */

/* The child costs two changes of process, so it reads only where a page may wait. Bytes, or -errno. */
static ssize_t read_pieces(struct mem_remote *r, const struct iovec *local,
			   const struct iovec *remote, size_t n)
{
	ssize_t got;

	if (r->waits)
		return -ETIMEDOUT;
	if (!pager_in_use()) {
		got = process_vm_readv(r->pid, local, n, remote, n, 0);
		return got < 0 ? -errno : got;
	}
	got = reader_read(r->pid, local, remote, n);
	r->waits = got == -ETIMEDOUT;
	return got;
}

static int remote_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct mem_remote *r = (struct mem_remote *)(uintptr_t)mem;
	uint8_t *to = dst;

	while (size) {
		__u32 part = size < READER_BYTES ? size : READER_BYTES;
		struct iovec local = {.iov_base = to, .iov_len = part};
		struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = part};
		ssize_t n = read_pieces(r, &local, &remote, 1);

		if (n < 0)
			return (int)n;
		if (n != part)
			return -EFAULT;
		to += part;
		addr += part;
		size -= part;
	}
	return 0;
}

/*
 * Reads up to BATCH pieces with one system call. The kernel stops at the first piece that faults
 * and returns the bytes before it. Sets err of the pieces up to and including that one and returns
 * their number (at least one), or -errno when the process itself is out of reach.
 */
static ssize_t read_batch(struct mem_remote *r, struct mem_vec *vec, size_t n)
{
	struct iovec local[BATCH] = {0}, remote[BATCH] = {0};
	size_t i, left = READER_BYTES;
	ssize_t got;

	if (vec->size > READER_BYTES) {
		vec->err = remote_read(&r->mem, vec->dst, vec->size, vec->addr);
		return vec->err && vec->err != -EFAULT ? vec->err : 1;
	}
	if (n > BATCH)
		n = BATCH;
	for (i = 0; i < n && vec[i].size <= left; i++) {
		left -= vec[i].size;
		local[i] = (struct iovec){.iov_base = vec[i].dst, .iov_len = vec[i].size};
		remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)vec[i].addr,
					   .iov_len = vec[i].size};
	}
	n = i;
	got = read_pieces(r, local, remote, n);
	if (got < 0 && got != -EFAULT)
		return got;
	left = got < 0 ? 0 : (size_t)got;
	for (i = 0; i < n && left >= vec[i].size; i++) {
		left -= vec[i].size;
		vec[i].err = 0;
	}
	if (i < n)
		vec[i++].err = -EFAULT;
	return (ssize_t)i;
}

static long remote_readv(const struct lb_mem *mem, struct mem_vec *vec, unsigned long n)
{
	struct mem_remote *r = (struct mem_remote *)(uintptr_t)mem;
	size_t i, done = 0;
	long whole = 0;

	while (done < n) {
		ssize_t decided = read_batch(r, vec + done, n - done);

		if (decided < 0)
			return decided;
		done += (size_t)decided;
	}
	for (i = 0; i < n; i++)
		whole += !vec[i].err;
	return whole;
}

void mem_remote_init(struct mem_remote *r, pid_t pid)
{
	*r = (struct mem_remote){.mem.read = remote_read, .mem.readv = remote_readv, .pid = pid};
}

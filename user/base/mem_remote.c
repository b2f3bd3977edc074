/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/mem_remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/mem_vec.h"

#define BATCH 64 /* pieces per system call, far below IOV_MAX */

static int remote_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_remote *r = (const struct mem_remote *)mem;
	struct iovec local = {.iov_base = dst, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = size};
	ssize_t n;

	if (!size)
		return 0;
	n = process_vm_readv(r->pid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

/*
 * Reads up to BATCH pieces with one system call. The kernel stops at the first piece that faults
 * and returns the bytes before it. Sets err of the pieces up to and including that one and returns
 * their number (at least one), or -errno when the process itself is out of reach.
 */
static ssize_t read_batch(const struct mem_remote *r, struct mem_vec *vec, size_t n)
{
	struct iovec local[BATCH] = {0}, remote[BATCH] = {0};
	size_t i, left;
	ssize_t got;

	if (n > BATCH)
		n = BATCH;
	for (i = 0; i < n; i++) {
		local[i] = (struct iovec){.iov_base = vec[i].dst, .iov_len = vec[i].size};
		remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)vec[i].addr,
					   .iov_len = vec[i].size};
	}
	got = process_vm_readv(r->pid, local, n, remote, n, 0);
	if (got < 0 && errno != EFAULT)
		return -errno;
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
	const struct mem_remote *r = (const struct mem_remote *)mem;
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads memory and files that may never come, see pager.h, from a child process. It cannot be killed
 * then, and a thread could not be left behind. All have the same child, until it waits.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define READER_PIECES 64
#define READER_BYTES 65536 /* of all pieces, or of a file at a time */

/*
 * process_vm_readv(2) with as many pieces of the same sizes on both sides; -errno. -ETIMEDOUT: it
 * waits for too long; do not read that process again.
 */
ssize_t reader_read(pid_t pid, const struct iovec *local, const struct iovec *remote, size_t n);

/* pread(2) of a file that is open with O_PATH; -errno. -ETIMEDOUT: do not read that file again. */
ssize_t reader_pread(int fd, void *dst, size_t size, uint64_t offset);

/* Ends the child. Later reads start another one. */
void reader_close(void);

#endif

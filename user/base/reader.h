/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads memory that may never come, see pager.h, from a child process. It cannot be killed then,
 * and a thread could not be left behind. All processes have the same child, until it waits.
 */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <sys/types.h>
#include <sys/uio.h>

#define READER_PIECES 64
#define READER_BYTES 65536 /* of all pieces */

/*
 * process_vm_readv(2) with as many pieces of the same sizes on both sides; -errno. -ETIMEDOUT: it
 * waits for too long; do not read that process again.
 */
ssize_t reader_read(pid_t pid, const struct iovec *local, const struct iovec *remote, size_t n);

#endif

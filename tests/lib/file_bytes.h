/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_LIB_FILE_BYTES_H
#define TESTS_LIB_FILE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of this machine as a whole, to be changed and looked at; the caller frees bytes. */
struct file_bytes {
	uint8_t *bytes;
	size_t len;
};

/* False: it cannot be read. */
bool file_bytes_read(const char *path, struct file_bytes *f);

#endif

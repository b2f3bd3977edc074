/* SPDX-License-Identifier: BSD-2-Clause */
/* This process's memory and open descriptors. */
#ifndef BASE_USAGE_H
#define BASE_USAGE_H

#include <stddef.h>
#include <stdint.h>

/* All return 0 where /proc does not answer. */
size_t usage_resident_bytes(void);
size_t usage_open_fds(void);

#endif

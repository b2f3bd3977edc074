/* SPDX-License-Identifier: BSD-2-Clause */
/* From a member to its struct: callbacks get a pointer to the member that was registered. */
#ifndef BASE_CONTAINER_H
#define BASE_CONTAINER_H

#include <stddef.h>

/* The struct whose `member` ptr points to. As with strchr(3), a const of the pointee is dropped. */
#define container_of(ptr, type, member) ((type *)((const char *)(ptr)-offsetof(type, member)))

#endif

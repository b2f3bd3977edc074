/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uthash, told not to end the process when memory runs out: an element that could not be added has
 * hh.tbl == NULL afterwards. Include this instead of <uthash.h>.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif

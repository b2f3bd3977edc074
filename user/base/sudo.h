/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The caller of sudo: the user whose IDs a command gets, who owns new files, and as whom `report`
 * opens source files. Anyone can set SUDO_UID and SUDO_GID: they grant no right.
 */
#ifndef BASE_SUDO_H
#define BASE_SUDO_H

#include <stdint.h>

#include "base/error.h"

struct sudo_caller {
	uint32_t uid, gid;
};

/*
 * Returns 1 and the caller; 0 if neither SUDO_UID nor SUDO_GID is set or we are not root; -EINVAL
 * if one of the two is no ID: the run ends then.
 */
int sudo_caller(struct sudo_caller *caller, struct error *err);

#endif

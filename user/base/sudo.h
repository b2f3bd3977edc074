/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who called sudo: as whom a command runs, to whom new files belong, as whom `report` opens source
 * files. Anyone can set the two variables: they say whom to serve, not whom to trust.
 */
#ifndef BASE_SUDO_H
#define BASE_SUDO_H

#include <stdint.h>

#include "base/error.h"

struct sudo_caller {
	uint32_t uid, gid;
};

/*
 * Returns 1 and the caller; 0 when there is none, as neither SUDO_UID nor SUDO_GID is set or we are
 * not root; -EINVAL when one of the two is no ID, and then nothing may be done in anyone's name.
 */
int sudo_caller(struct sudo_caller *caller, struct error *err);

#endif

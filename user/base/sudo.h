/* SPDX-License-Identifier: BSD-2-Clause */
/* Who called sudo. Anyone can set these variables: they say whom to serve, not whom to trust. */
#ifndef BASE_SUDO_H
#define BASE_SUDO_H

#include <stdbool.h>
#include <stdint.h>

/* False when nobody did: SUDO_UID and SUDO_GID are not there, or no numbers. */
bool sudo_caller(uint32_t *uid, uint32_t *gid);

#endif

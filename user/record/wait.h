/* SPDX-License-Identifier: BSD-2-Clause */
/* --wait: processes that are to load Lua yet. */
#ifndef RECORD_WAIT_H
#define RECORD_WAIT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Returns 0 when one of n processes has Lua, or something that is for a recording to refuse; at once
 * when it has by now. waits, if not NULL, is called first when none has. -ENODATA: all have ended
 * without.
 */
int session_wait_lua(const pid_t *pids, size_t n, void (*waits)(void *arg), void *arg,
		     struct error *err);

#endif

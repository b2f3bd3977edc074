/* SPDX-License-Identifier: BSD-2-Clause */
/* --wait: waits until a process has loaded Lua. */
#ifndef RECORD_WAIT_H
#define RECORD_WAIT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Returns 0 as soon as one of n processes has Lua, or a VM that a recording refuses. If none has it
 * yet, calls `waits` (may be NULL) once. -ENODATA: all have ended without Lua.
 */
int session_wait_lua(const pid_t *pids, size_t n, void (*waits)(void *arg), void *arg,
		     struct error *err);

#endif

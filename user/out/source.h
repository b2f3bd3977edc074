/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where annotations get source files from. A chunk's name is foreign: whoever made it must not be
 * shown what they could not read themselves, so the one that opens is chosen by the command: for a
 * live target one that opens as the target would, for a saved profile one that opens as ordinary
 * users (proc/source.h).
 */
#ifndef OUT_SOURCE_H
#define OUT_SOURCE_H

#include <stdio.h>

struct source {
	/* 0 and a file that the caller closes, or -errno. The path is as in the chunk name. */
	int (*open)(void *ctx, const char *path, FILE **out);
	void *ctx;
};

#endif

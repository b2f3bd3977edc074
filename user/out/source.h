/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens source files for annotation. A chunk's name is foreign: it must not expose files that its
 * author could not read. So the command chooses the opener: of a live target with the target's
 * rights, of a saved profile with those of ordinary users (proc/source.h).
 */
#ifndef OUT_SOURCE_H
#define OUT_SOURCE_H

#include <stdint.h>
#include <stdio.h>

struct source {
	/* 0 and a file that the caller closes, or -errno. The path is as in the chunk name. */
	int (*open)(void *ctx, const char *path, FILE **out);
	void *ctx;
	/* A stream's file that was changed later, by fstat(), may not be what ran. In ns since the epoch; 0: not known */
	uint64_t since_ns;
};

#endif

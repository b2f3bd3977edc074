/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The right to open a process's source files, taken while it lives and kept for the report
 * (source_open.h).
 */
#ifndef RECORD_SOURCES_H
#define RECORD_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/source.h"

#define SOURCES_ENDED 64

/* The rights of ended processes: one for all that had the same. */
struct ended_source {
	struct target_source *files;
	bool tried;
};

struct ended_sources {
	struct ended_source all[SOURCES_ENDED];
	size_t n;
};

/* Those of one process. */
struct sources {
	struct target_source *files; /* NULL: what the samples' image may read is unknown */
	struct ended_source *ended;  /* whose files these are; NULL: its own */
	bool held;		     /* sources_hold() was called */
	bool ended_early;	     /* it ended before its rights were read */
	bool tried;
};

/*
 * Reads a process's rights while it lives, as target_source_new(). If that fails, its samples show
 * only files that all users can read; -ESTALE.
 */
int sources_hold(struct sources *sources, pid_t pid, uint64_t image_id);

/* Reads a held process's rights again: it may have dropped some. */
void sources_look(struct sources *sources);

/*
 * The process has ended. Bounds the descriptors held for ended processes: beyond SOURCES_ENDED
 * different rights, samples show only files that all users can read.
 */
void sources_ended(struct ended_sources *ended, struct sources *sources);

/* Releases the files, unless they are shared. */
void sources_drop(struct sources *sources);

void ended_sources_free(struct ended_sources *ended);

#endif

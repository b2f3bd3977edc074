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

/* What processes that have ended could open: one for all that could open the same. */
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
	bool held;		     /* files was asked for */
	bool gone;		     /* it ended before it was taken hold of */
	bool tried;
};

/*
 * Takes hold of a process while it lives, as target_source_new(). Where that fails its samples show
 * what all can read; -ESTALE.
 */
int sources_hold(struct sources *sources, pid_t pid, uint64_t image_id);

/* Looks at the process once more, if it is held: it may have given up rights. */
void sources_look(struct sources *sources);

/*
 * The process has ended. A program that starts others without end does not make us hold descriptors
 * without end: beyond SOURCES_ENDED that differ, samples show what all can read.
 */
void sources_ended(struct ended_sources *ended, struct sources *sources);

/* Releases the files, unless they are shared. */
void sources_drop(struct sources *sources);

void ended_sources_free(struct ended_sources *ended);

#endif

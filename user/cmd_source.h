/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files for the annotations of a live report. A chunk is looked for as the processes see it
 * whose stacks name it, each with its own rights: of two that are sampled together one may be
 * root's and the other no friend of root.
 */
#ifndef CMD_SOURCE_H
#define CMD_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "prof/prof.h"
#include "target/source.h"

struct process_source {
	pid_t pid;
	struct target_source *files; /* NULL: what its samples' image could read is not known */
	bool gone;		     /* it ended before it was taken hold of */
	bool tried;
};

struct process_sources {
	const struct prof *prof; /* borrowed: who names what */
	struct process_source *all;
	size_t n;
	struct target_source *others; /* of processes that ended before they were taken hold of */
};

/*
 * Takes hold of a process while it lives, as target_source_new(). Where that fails its samples show
 * what all can read; -ESTALE.
 */
int process_sources_add(struct process_sources *sources, pid_t pid, uint64_t image);
/* Looks at the process once more, if it is known: it may have given up rights. */
void process_sources_look(struct process_sources *sources, pid_t pid);
/* Another process has this number now. The samples of both are under it: they show what all can
 * read. */
void process_sources_forked(struct process_sources *sources, pid_t pid);
void process_sources_free(struct process_sources *sources);

/* ctx is a struct process_sources; the signature is that of out/source.h. */
int process_sources_open(void *ctx, const char *path, FILE **out);

#endif

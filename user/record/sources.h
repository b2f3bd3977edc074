/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files for the annotations of a live report. A chunk is looked for as the processes see it
 * whose stacks name it, each with its own rights: of two that are sampled together one may be
 * root's and the other no friend of root.
 */
#ifndef RECORD_SOURCES_H
#define RECORD_SOURCES_H

#include <stdio.h>

#include "prof/prof.h"
#include "record/process.h"

/*
 * Takes hold of a process while it lives, as target_source_new(). Where that fails its samples show
 * what all can read; -ESTALE.
 */
int sources_hold(struct process *process);

/* Looks at the process once more, if it is held: it may have given up rights. */
void sources_look(struct process *process);

/*
 * It has ended. A program that starts others without end does not make us hold descriptors without
 * end: beyond SOURCES_ENDED that differ, samples show what all can read.
 */
void sources_ended(struct processes *processes, struct process *process);

/* Releases the files of a process, unless they are shared. */
void sources_drop(struct process *process);

/* Another process has this number now. The samples of both are under it: they show what all can
 * read. */
void sources_forked(const struct processes *processes, pid_t pid);

/* Opens what the stacks of prof name, as target_source_open(). */
int sources_open(struct processes *processes, const struct prof *prof, const char *path,
		 FILE **out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files for the annotations of a live report. A chunk is looked for as the processes see it
 * whose stacks name it, each with its own rights: of two that are sampled together one may be
 * root's and the other no friend of root.
 */
#ifndef RECORD_SOURCE_OPEN_H
#define RECORD_SOURCE_OPEN_H

#include <stdio.h>

#include "process.h"
#include "prof/prof.h"

/* Another process has this number now. The samples of both are under it: they show what all can
 * read. */
void sources_forked(const struct processes *processes, pid_t pid);

/* Opens what the stacks of prof name, as target_source_open(). */
int sources_open(struct processes *processes, const struct prof *prof, const char *path,
		 FILE **out);

#endif

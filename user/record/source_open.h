/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens source files for the annotations of a live report. A chunk's file is opened with the rights
 * of the processes whose stacks name it, each in its own view of the file system: of two that are
 * sampled together, one may be root's and the other hostile.
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

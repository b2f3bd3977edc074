/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports over many processes: a section for each process, program, container and so on, in the
 * order of their shares. In folded stacks, what the sections would be is the root frame.
 */
#ifndef OUT_SECTIONS_H
#define OUT_SECTIONS_H

#include <stdio.h>

#include "jitp_options.h"
#include "prof/prof.h"
#include "source.h"

enum sections_by {
	SECTIONS_NONE,
	SECTIONS_PID,
	SECTIONS_COMM,
	SECTIONS_EXE,
	SECTIONS_CGROUP,
	SECTIONS_CONTAINER,
	SECTIONS_VM,
	SECTIONS_THREAD,
	SECTIONS_COROUTINE, /* only of a profile that was recorded for it */
	SECTIONS_ZONE,	    /* the same */
};

/* The words of --by, for messages. */
#define SECTIONS_FIRST "pid, comm, exe, cgroup, container, vm, thread, coroutine"
#define SECTIONS_NAMES SECTIONS_FIRST " or zone"

/* Returns SECTIONS_NONE for an unknown word. */
enum sections_by sections_named(const char *word);

/*
 * As jitp_render(), for each section. Those whose share is less than jit.p's minimum are not shown,
 * nor more than the first 1000; a last line has the sum of these.
 */
int sections_render(const struct prof *prof, enum sections_by by,
		    const struct jitp_options *options, const struct source *source, FILE *out);

/* Copies a profile, with a root frame for each section. */
int sections_as_roots(const struct prof *prof, enum sections_by by, struct prof **out);

#endif

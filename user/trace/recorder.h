/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins the parts: events of the hook module (hook/hook.h) -> align.h -> figures, trace file, Chrome
 * trace events. Each Lua state has its own stacks and its own clock; all share one program.
 *
 * Time. An event is stamped when its hook begins, so that the time to the next one has the rest of the
 * hook in it, and what the VM takes to call it. The module's own function (HOOK_OWN_SOURCE) shows how
 * long that is, for each kind of event: the median is subtracted from each time. The
 * module reports the time that it takes to describe a new function, and to wait for luabpf.
 */
#ifndef TRACE_RECORDER_H
#define TRACE_RECORDER_H

#include <stdio.h>

#include "align.h"
#include "base/cleanup.h"
#include "hook/hook.h"
#include "program.h"

struct recorder;

struct recorder_options {
	FILE *raw;    /* a trace file; NULL: none */
	FILE *chrome; /* Chrome trace events; NULL: none */
};

struct recorder_losses {
	struct align_losses stacks;
	uint64_t lines; /* hits of lines beyond those that are kept */
	uint64_t
		functions; /* Lua functions whose lines are not known: stripped, or no room for them */
};

/* The streams outlive it. -ENOMEM. */
int recorder_new(const struct recorder_options *options, struct recorder **out);
void recorder_free(struct recorder **recorder);

#define __recorder __cleanup(recorder_free)

/* A hook_events_fn: arg is the recorder. */
int recorder_events(void *recorder, struct hook_state *state, const struct hook_event *events,
		    size_t n);

/* After the last events: completes the files and the program's figures. */
int recorder_finish(struct recorder *recorder);

/* Owned by the recorder; complete after recorder_finish(). */
const struct program *recorder_program(const struct recorder *recorder);

/* Events that were read so far. */
uint64_t recorder_nevents(const struct recorder *recorder);

void recorder_losses(const struct recorder *recorder, struct recorder_losses *out);

#endif

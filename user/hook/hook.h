/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * luabpf's side of the hook module (agent/): a command whose Lua interpreters load it, and what they
 * write. The command, its children and what they leave behind are the caller's user's: their files
 * are foreign bytes. They are read with pread(2) and never mapped, as a file can be cut short.
 */
#ifndef HOOK_HOOK_H
#define HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "abi.h"

#define HOOK_STATES_MAX 4096

struct hook_run;
struct hook_state;

/*
 * Makes the directory of the files, as the caller of sudo, and sets the environment of this process,
 * which a command that is launched from now on inherits. -ENOENT: the modules are not installed.
 */
int hook_run_open(enum hook_mode mode, struct hook_run **out, struct error *err);

/* Removes the directory. */
void hook_run_free(struct hook_run **run);

#define __hook_run __attribute__((cleanup(hook_run_free)))

/*
 * events: of one state, in their order. Functions that they name are known, unless the file lies.
 * An error ends hook_run_poll().
 */
typedef int (*hook_events_fn)(void *arg, struct hook_state *state, const struct hook_event *events,
			      size_t n);

/*
 * Finds new states and reads what is new of all: header, functions, and in mode HOOK_TRACE the events
 * that were written until now, which it hands to `fn`. Call it every few milliseconds, or in mode
 * HOOK_COUNT once, at the end. A program whose ring is full waits.
 */
int hook_run_poll(struct hook_run *run, hook_events_fn fn, void *arg, struct error *err);

/* The states so far: one for each Lua state of each process. They live as long as `run`. */
size_t hook_run_nstates(const struct hook_run *run);
struct hook_state *hook_run_state(const struct hook_run *run, size_t i);

/*
 * 0: there is a state. -ENOENT, with an error that names the command: no interpreter in it has loaded
 * the module. Another error: none that has could make its file.
 */
int hook_run_check(const struct hook_run *run, const char *command, struct error *err);

/* The errno of a Lua state that could not make its file, so that its events are missing; 0: no such state. */
int hook_run_failed(const struct hook_run *run);

/* Files beyond HOOK_STATES_MAX, and files that are no state's: not read. */
uint64_t hook_run_unread(const struct hook_run *run);

/* As of the last poll; pid, state and flags are what the target says. */
const struct hook_header *hook_state_header(const struct hook_state *state);

/* True if the file contradicts itself or cannot be read: what was read before is kept. */
int hook_state_broken(const struct hook_state *state);

/* True if its process runs still: what it does from now on is not read. */
bool hook_state_runs(const struct hook_run *run, const struct hook_state *state);

/* Returns the number of functions; their IDs are below it. */
uint32_t hook_state_nfuncs(const struct hook_state *state);

/* Returns NULL if there is no such function. Valid until the next poll. */
const struct hook_func *hook_state_func(const struct hook_state *state, uint32_t id);

/* Returns the bytes, *len of them; none if they do not lie in the file. Valid until the next poll. */
const char *hook_state_bytes(const struct hook_state *state, struct hook_bytes bytes, size_t *len);

/* For the caller: what it keeps of a state. NULL until it was set. */
void hook_state_set_data(struct hook_state *state, void *data);
void *hook_state_data(const struct hook_state *state);

#endif

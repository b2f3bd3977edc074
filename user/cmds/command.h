/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command that was launched: waits for its end, and passes the first signal on to it. A terminal
 * sends SIGINT to the command itself. The second signal ends luabpf.
 */
#ifndef CMDS_COMMAND_H
#define CMDS_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct command {
	pid_t pid;
	int pidfd;
	int stop;   /* of signals_catch(); -1: a signal has come */
	int status; /* of waitpid(), once ended */
	bool ended;
};

/* pid: a child. stop: of signals_catch(). Returns 0 or -errno. */
int command_begin(struct command *command, pid_t pid, int stop, struct error *err);

/* Waits until the command ends, a signal comes, or timeout_ms have passed (-1: never). Returns 0 or
 * -errno. */
int command_wait(struct command *command, int timeout_ms, struct error *err);

void command_free(struct command *command);

#endif

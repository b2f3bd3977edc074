/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to signals is inherited: that which our caller has set, we need to change, and a
 * command that we start has to get as it was. (A background job of a shell ignores SIGINT, a
 * service may ignore SIGPIPE.)
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/*
 * At the program's start: remembers what was given. From then on a closed pipe and a file that
 * becomes larger than it may are errors of a write, and ended children can be waited for. SIGINT and
 * SIGTERM end the program, whatever was given, and so does SIGHUP unless it is ignored (nohup).
 */
void signals_take(void);

/* Is it ignored now? */
bool signals_ignored(int signal);

/*
 * The first SIGINT, SIGTERM or SIGHUP from now on makes *fd readable, and the second one ends the
 * program at once, whatever it does. *fd stays ours.
 */
int signals_catch(int *fd);

/* The first one that was caught; 0: none so far. */
int signals_caught(void);

/* From now on the first one ends the program at once, too. */
void signals_release(void);

/* In a child: actions and mask are those that signals_take() found. Without it, nothing is done. */
void signals_give_back(void);

#endif

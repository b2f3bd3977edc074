/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signal dispositions are inherited. We change the caller's, and a command that we start gets them
 * back. (A background job of a shell ignores SIGINT, a service may ignore SIGPIPE.)
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

/*
 * At the program's start: saves the inherited dispositions. From then on a closed pipe and a file
 * beyond its size limit are errors of a write, and ended children can be waited for. SIGINT and
 * SIGTERM end the program, even if inherited as ignored; so does SIGHUP unless ignored (nohup).
 */
void signals_take(void);

/*
 * From now on the first SIGINT, SIGTERM or SIGHUP makes *fd readable, and the second one ends the
 * program at once, unless it is the first one again within a tenth of a second. *fd is not the
 * caller's to close.
 */
int signals_catch(int *fd);

/*
 * From now on SIGHUP does not end the program, but makes *fd, an eventfd, readable; also if it was
 * inherited as ignored. *fd is not the caller's to close.
 */
int signals_catch_hangup(int *fd);

/* Returns the first signal that was caught; 0: none so far. */
int signals_caught(void);

/* From now on the first signal ends the program at once, too. */
void signals_release(void);

/* In a child: restores the actions and the mask that signals_take() saved, if it was called. */
void signals_give_back(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens to signals is inherited: that which our caller has set, we need to change, and a
 * command that we start has to get as it was. (A background job of a shell ignores SIGINT, a
 * service may ignore SIGPIPE.)
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

/*
 * At the program's start: remembers what was given. From then on a closed pipe is an error of a
 * write, and ended children can be waited for.
 */
void signals_take(void);

/* In a child: actions and mask are those that signals_take() found. Without it, nothing is done. */
void signals_give_back(void);

#endif

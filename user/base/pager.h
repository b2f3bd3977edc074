/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory and files whose content another process provides: the daemon of a FUSE file system, or who
 * handles a userfaultfd. It may never do so, and the reader then waits for ever: for FUSE, also
 * after SIGKILL. Both questions are answered by the kernel alone.
 */
#ifndef BASE_PAGER_H
#define BASE_PAGER_H

#include <stdbool.h>
#include <stdint.h>

/* May a process of another user have such memory now? */
bool pager_in_use(void);

/*
 * Is this device, st_dev, a FUSE file system that another user than root has mounted, or one that
 * did not answer? An overlay may lie on such a one, which its device does not show.
 */
bool pager_is_file_system(uint64_t dev);
void pager_no_answer(uint64_t dev);

/* Closes what was opened to answer. Later questions open it anew. */
void pager_close(void);

#endif

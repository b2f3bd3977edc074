/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scope-bound ownership, as in systemd: __cleanup variables, and TAKE_* to move out of them.
 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define __cleanup(fn) __attribute__((cleanup(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define __free __cleanup(cleanup_free)
#define __close __cleanup(cleanup_fd)
#define __fclose __cleanup(cleanup_file)
#define __closedir __cleanup(cleanup_dir)

/* Moves the value out: the variable keeps nothing to clean up. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) _taken = (p);                                                        \
		(p) = NULL;                                                                        \
		_taken;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int _taken = (fd);                                                                 \
		(fd) = -1;                                                                         \
		_taken;                                                                            \
	})

#endif

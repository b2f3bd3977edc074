/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A failure as a library reports it to a command: the object, the cause, and the remedy.
 * Libraries fill it and return -errno; only commands print it. NULL is allowed everywhere.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

struct error {
	char what[512];	  /* "object: cause", no newline at the end */
	char remedy[512]; /* one sentence or command; empty when there is none */
};

/* Both return `code` (a negative errno), so that a caller can write `return error_set(...)`. */
int error_set(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int error_remedy(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif

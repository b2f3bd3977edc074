/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outputs of a recording with --every, and the metrics file of any recording. One that cannot be
 * written is reported and counted, and the next is tried.
 */
#ifndef CMDS_INTERVALS_H
#define CMDS_INTERVALS_H

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"
#include "out/source.h"
#include "record/session.h"
#include "record/summary.h"

#define INTERVAL_STAMP 32 /* bytes of a start as %t shows it */

struct interval_outputs {
	const struct options *opts;
	struct source source;
	uint64_t written, unwritten; /* intervals */
	uint64_t unwritten_metrics;
	uint64_t last_ns; /* when the last one that was written ended, since the epoch */
	/* of the last interval: two may begin in one second */
	char stamp[INTERVAL_STAMP];
	unsigned int same;
};

/* Opens and closes all outputs, so that an unwritable path is an error before work begins. */
int intervals_check(const struct options *opts, struct error *err);

/* Opens and closes the metrics file, if any, to check its path. */
int intervals_check_metrics(const struct options *opts, struct error *err);

/*
 * Writes the interval that ends now, with --every, and the metrics. Sets *run to the counts of the
 * whole run, and *total to the profile that they refer to. Fails only when no later interval could
 * be written either.
 */
int intervals_write(struct interval_outputs *outputs, struct session *session, struct prof **total,
		    struct summary *run, struct error *err);

/* intervals_write() as the fn of session_ticks. */
int intervals_tick(void *outputs, struct session *session, struct error *err);

/* Writes the metrics, if they are asked for. */
void intervals_metrics(struct interval_outputs *outputs, struct session *session,
		       const struct summary *run);

/* Writes the interval's start as %t shows it: 20261126T052311Z, and _2 for the second such one. */
void interval_stamp(uint64_t time_ns, unsigned int nth, char stamp[INTERVAL_STAMP]);

/* Puts a path with the stamp in place of each %t. */
void interval_name(const char *pattern, const char *stamp, struct text *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of a recording in Prometheus's text format, version 0.0.4. */
#ifndef RECORD_METRICS_H
#define RECORD_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"
#include "session.h"
#include "summary.h"

struct metrics {
	const struct summary *run; /* of the whole recording so far, with its sizes */
	uint64_t profiles, unwritten_profiles, unwritten_metrics;
	uint64_t last_profile_ns;   /* since the epoch; 0: none yet */
	const char *vms[LB_BUILDS]; /* names of builds: foreign bytes */
	uint32_t nvms;
};

/* 0, -ENOMEM or the error of a write. */
int metrics_write(const struct metrics *m, FILE *to);

/* Puts a label's value: readable UTF-8, with \, " and line feed escaped. */
void metrics_put_label(struct text *out, const char *value);

#endif

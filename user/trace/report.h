/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts and files that show a traced program. All return 0 or -ENOMEM; errors of writes stay in
 * the stream. */
#ifndef TRACE_REPORT_H
#define TRACE_REPORT_H

#include <stdio.h>

#include "coverage.h"
#include "out/source.h"

/* The functions with most time, and the coverage of each file. */
int report_summary(const struct program *program, const struct coverage *coverage, FILE *to);

/*
 * A copy of each file, with hits and times beside its lines. One that is not the file that ran any
 * more is named, not shown. is_same: has the file that the source names the same size and time?
 */
struct report_sources {
	struct source source;
	bool (*is_same)(void *ctx, const struct program_source *source);
	void *ctx;
};

int report_annotate(const struct coverage *coverage, const struct report_sources *files, FILE *to);

/* lcov's tracefile (man geninfo). */
int report_lcov(const struct coverage *coverage, FILE *to);

/* Cobertura's XML (coverage-04.dtd). time: seconds since the epoch. */
int report_cobertura(const struct coverage *coverage, uint64_t time, FILE *to);

#endif

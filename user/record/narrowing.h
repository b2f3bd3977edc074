/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides for BPF which processes a narrowed recording samples (bpf/narrow.bpf.h). */
#ifndef RECORD_NARROWING_H
#define RECORD_NARROWING_H

#include <stdint.h>

#include <unwind/abi.h>

#include "bpf/loader.h"
#include "proc/narrow.h"

/* Returns LB_NARROW_*: what a recording is narrowed by. */
uint32_t narrowing_kinds(const struct narrow *narrow);

enum narrowing {
	NARROWING_WANTED,
	NARROWING_UNWANTED,
	NARROWING_UNDECIDED, /* it has ended, or is another by now */
};

/*
 * Decides whether the process of a record is wanted, as it was then. BPF gets the decision for all
 * processes of that identity.
 */
enum narrowing narrowing_decide(const struct narrow *narrow, struct loader *loader,
				const struct lb_rec_task *rec);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From raw samples to the frames of a profile: joins the records of BPF with the target's memory.
 * Which prototype an address means is protos.h's matter; a sample that shows a doubtful one is lost
 * ("proto-ambiguous"), and never gets a wrong name.
 */
#ifndef SYM_SYMBOLIZER_H
#define SYM_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <luabpf/abi.h>

#include "prof/prof.h"

struct symbolizer;

/* Samples go to prof, which must outlive the symbolizer. */
int symbolizer_new(struct prof *prof, struct symbolizer **out);
void symbolizer_free(struct symbolizer **s);

/* A process image begins: forgets what was known of the pid under another epoch. */
int symbolizer_process(struct symbolizer *s, pid_t pid, uint32_t epoch);

/* Ditto, of what origin has forked: it has the same mapped, though it may have ended already. */
int symbolizer_fork(struct symbolizer *s, pid_t pid, uint32_t epoch, pid_t origin);

/* The process runs another image by now: what is known of this one counts for the rest of its samples.
 */
void symbolizer_image_ended(struct symbolizer *s, pid_t pid, uint32_t epoch);

/* The process has ended and its samples were read: forgets it. */
void symbolizer_end(struct symbolizer *s, pid_t pid);

/* Keeps what BPF shipped. build is what the record names, and outlives the symbolizer. */
int symbolizer_proto(struct symbolizer *s, const struct lb_rec_proto *rec,
		     const struct lb_build *build);

/*
 * Adds samples that are the same to the profile, or, when their names cannot be known any more, to
 * its losses. build is what the record names, and outlives the symbolizer. Returns 0, also for a
 * loss, -EAGAIN when it takes another round to decide on them (PROTOS_WAIT at most), or -ENOMEM.
 */
int symbolizer_sample(struct symbolizer *s, const struct lb_rec_sample *rec, uint32_t count,
		      const struct lb_build *build);

/*
 * Samples of compiled code so far whose lines and inlined functions are those of its guards only.
 */
uint64_t symbolizer_coarse(const struct symbolizer *s);

/* How often what was known turned out to be another, or was forgotten. */
uint64_t symbolizer_changes(const struct symbolizer *s);

/* protos_share(), of a process that lives. */
bool symbolizer_share(struct symbolizer *s, pid_t pid);

/* What was sent in this round is not all read. */
void symbolizer_left(struct symbolizer *s);

/* A new round: what is known is checked against the live processes at its next use. */
void symbolizer_round(struct symbolizer *s);

#endif

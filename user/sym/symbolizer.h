/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From raw samples to the rows of a profile: joins the records of BPF with what is known of the
 * process's image. Which prototype an address means is protos.h's matter; a sample that shows a
 * ambiguous one is lost ("proto-ambiguous"), and never gets a wrong name.
 */
#ifndef SYM_SYMBOLIZER_H
#define SYM_SYMBOLIZER_H

#include <stdint.h>

#include <unwind/abi.h>

#include "image.h"
#include "prof/prof.h"
#include "zones.h"

struct symbolizer;

/* Samples go to prof, which must outlive the symbolizer. */
int symbolizer_new(struct prof *prof, struct symbolizer **out);
void symbolizer_free(struct symbolizer **s);

/* Samples go to this profile from now on; image_begin_profile() is called for each image, too. */
void symbolizer_begin(struct symbolizer *s, struct prof *prof);

/* Rows have their VM's address from now on. */
void symbolizer_record_vms(struct symbolizer *s);

/* Samples get their zones' labels from now on. 0 or -ENOMEM. */
int symbolizer_record_zones(struct symbolizer *s, const struct zones_options *options);

/* Keeps a zone's name. 0 or -ENOMEM. */
int symbolizer_zone(struct symbolizer *s, const struct lb_rec_zone *rec);

/* All 0 if zones are not recorded. */
void symbolizer_zones(const struct symbolizer *s, struct zones_counts *out);

/* Returns how many files are open or kept for symbols, and the memory of these. */
size_t symbolizer_files(const struct symbolizer *s, uint64_t *bytes);
/* Keeps a prototype that BPF sent. build is the record's, and outlives the image. */
int symbolizer_proto(struct image *image, const struct lb_rec_proto *rec,
		     const struct lb_build *build);

/* Outcomes of samples. */
struct symbolized {
	const char *lost; /* the reason why they are lost; NULL: they are not */
	size_t row;	  /* of the profile, if they are not lost */
};

/*
 * Adds `count` samples of one stack to the profile. If their names cannot be known any more they are lost: sets
 * out->lost, which the caller has set to NULL. build is what the record names, and outlives the image; vm is its release.
 * Returns 0, also for a loss, or -ENOMEM; -EAGAIN if a prototype was freed: to be called again in the next round, for
 * PROTOS_WAIT rounds at most.
 */
int symbolizer_sample(struct image *image, const struct lb_rec_sample *rec, uint32_t count,
		      const struct lb_build *build, const char *vm, struct symbolized *out);

/* Samples of the profile so far, of compiled code, whose lines and inlined functions are those of snapshots. */
uint64_t symbolizer_snapshot_lines(const struct symbolizer *s);

/* How often what was known turned out to be another, or was forgotten. */
uint64_t symbolizer_changes(const struct symbolizer *s);

/* A new round: what is known is checked against the live processes at its next use. */
void symbolizer_round(struct symbolizer *s);

/* Samples were passed within a round; those that follow in it may be newer. */
void symbolizer_committed(struct symbolizer *s);

#endif

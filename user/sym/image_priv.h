/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by image.c and symbolizer.c. */
#ifndef SYM_IMAGE_PRIV_H
#define SYM_IMAGE_PRIV_H

#include <stdint.h>

#include "alike.h"
#include "base/hash.h"
#include "base/mem_remote.h"
#include "family.h"
#include "image.h"
#include "kept.h"
#include "native.h"
#include "origin.h"
#include "prof/prof.h"
#include "protos.h"
#include "vm_names.h"
#include "zones.h"

/*
 * A frame that was symbolized before: what it is, who called it, and which functions it stood on.
 */
struct cached_frame {
	struct {
		uint64_t word;
		uint64_t caller;
		uint64_t below; /* see below_of() */
		uint32_t pc, fp, caller_pc, caller_fp;
	} key;
	uint32_t id;
	UT_hash_handle hh;
};

struct image {
	struct symbolizer *owner;
	struct mem_remote remote;
	bool learned; /* image_learn() has been called */
	struct native_maps *maps;
	uint32_t maps_round;	       /* in which they were read */
	uint64_t text_start, text_end; /* process_text() */
	uint32_t profile_round;	       /* of image_begin_profile() */
	struct protos *protos;
	struct vm_names *vms;
	struct kept_functions *kept;
	struct vm_zones *zones;
	struct compiled *compiled;	    /* of the family that compiles; NULL: nothing was yet */
	const struct lb_build *compiled_of; /* whose code is being read */
	struct alike *alike;		    /* NULL until compiled code could not be followed */
	struct cached_frame *frames;
	struct image_origin origin;
};

struct symbolizer {
	struct prof *prof;
	struct native *native;
	struct zones *zones; /* NULL: they are not recorded */
	uint32_t round;
	/* the same, and each commit within it: zones are searched again, as later samples may be newer */
	uint32_t zone_round;
	uint64_t changes;
	uint64_t snapshot_line;
	bool by_vm; /* a row is of one VM */
};

/* Forgets prototypes and frames when there are too many. */
void image_bound(struct image *image);

/*
 * Which mappings a C function's address is to be understood by: libraries come and go, and one may
 * take another's place. Read once a round; 0, without a read, if addr is in the program's own text.
 */
uint64_t image_maps_now(struct image *image, uint64_t addr);

#endif

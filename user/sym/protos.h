/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled prototypes of one process.
 *
 * A copy is keyed by the prototype's address and BPF's fingerprint, which is computed once an epoch
 * (lb_is_proved() in unwind.h). It is read from the bytes that BPF sent at the first sample, and
 * from the live process for parts that these lack. It is compared with the live process once a
 * round, after the round's samples: a prototype that was replaced by another is ambiguous in the
 * round, and its samples are lost.
 */
#ifndef SYM_PROTOS_H
#define SYM_PROTOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/abi.h>

#include "family.h"

struct protos;

struct protos_entry {
	const struct sym_family *family;
	struct proto *proto; /* NULL: it could not be read */
	char *kept_as;	     /* protos_set_kept()'s; NULL: it was not called */
	uint32_t place;	     /* likewise */
	uint32_t order;	     /* proto_order() at the first protos_get(); PROF_NO_ORDER */
	uint32_t contents;   /* of a file's function that was read whole; 0: of any other */
	bool ambiguous;	     /* ambiguous in this round */
	/* was freed: its samples are held back for PROTOS_WAIT rounds. They count if the process ends
	 * meanwhile, and are lost else */
	bool waits;
};

/* Rounds for which samples of freed prototypes are held back. */
#define PROTOS_WAIT 40

/*
 * mem is the live process's, and outlives protos. changed is called when a prototype changes that
 * protos_get() has returned: results derived from it are invalid.
 */
int protos_new(const struct lb_mem *mem, void (*changed)(void *arg), void *arg,
	       struct protos **out);
void protos_free(struct protos **protos);

/* Removes all of them. They are read again on demand. */
void protos_clear(struct protos *protos);
size_t protos_count(const struct protos *protos);

/* Frees the copies that were neither sent nor requested since this round; calls fn for each. */
typedef void protos_evicted_fn(void *arg, uint64_t addr);
void protos_evict(struct protos *protos, uint32_t round, protos_evicted_fn *fn, void *arg);
size_t protos_kept(const struct protos *protos); /* copies that were not */

/*
 * Stores a prototype that BPF sent in this round. build is the record's, and outlives protos. 0
 * or -ENOMEM.
 */
int protos_put(struct protos *protos, const struct lb_rec_proto *rec, const struct lb_build *build,
	       uint32_t round);

/*
 * Returns a prototype, compared with the live process once a round; NULL: out of memory. Valid
 * until protos_clear().
 */
const struct protos_entry *protos_get(struct protos *protos, const struct lb_build *build,
				      uint64_t addr, uint32_t fp, uint32_t round);

/*
 * Sets the name under which its host keeps the function ("": none), which was read since
 * protos_get() returned it: if it is still at its address now. 0, -ESTALE or -ENOMEM.
 */
int protos_set_kept(struct protos *protos, const struct protos_entry *entry, const char *name);

/*
 * Returns how most of the build's prototypes in this process contradict its layout, as a reason of
 * losses: the layout is another. NULL: they do not.
 */
const char *protos_misfit(const struct protos *protos, const struct lb_build *build);

/* This round has left a backlog of BPF's records: prototypes that are ambiguous in it are so in the
 * next one, too. */
void protos_left(struct protos *protos, uint32_t round);

/* The image has ended: the copies are final, and no longer compared. */
void protos_end(struct protos *protos);

/* Counts samples of the process, after protos_get() of their prototypes. */
void protos_sampled(struct protos *protos, uint32_t count);

/*
 * True if BPF may compute a prototype's fingerprint only once an epoch from now on: the process was
 * steady. Once true, samples are judged accordingly. False for good after a sampled prototype was
 * freed, or replaced by another at its address.
 */
bool protos_share(struct protos *protos, uint32_t round);

/* Returns the name under which parent's bytecode stores a child prototype's closures; NULL. */
const char *protos_definition(const struct protos_entry *parent, uint64_t child);

/* True if that name is another child's, or ends in this one. */
bool protos_defines_another(const struct protos_entry *parent, uint64_t child, const char *name);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The prototypes of one process that samples showed.
 *
 * What is known of a prototype is keyed by its address and the fingerprint that BPF made, once in
 * each epoch (lb_is_proved() in walk.h). It comes from the bytes that BPF sent when it saw the
 * prototype for the first time, or from the live process, where these do not reach. It is compared
 * with the live process once a round, when all samples of the round have been taken: a prototype
 * that was replaced by another is ambiguous for the round, and the samples that show it are lost.
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
	uint32_t order;	     /* proto_order(), when it was shown first */
	bool doubtful;	     /* may be one of two in this round */
	bool waits;	     /* was freed: its samples count if the process ends now */
};

/* So many rounds are samples kept back that show what was freed. */
#define PROTOS_WAIT 40

/*
 * mem is the live process, and outlives protos. changed is called when what protos_get() gave of a
 * prototype is no longer so: whatever was made of it is void.
 */
int protos_new(const struct lb_mem *mem, void (*changed)(void *arg), void *arg,
	       struct protos **out);
void protos_free(struct protos **protos);

/* Forgets all of them. They are learned again where they are needed. */
void protos_clear(struct protos *protos);
size_t protos_count(const struct protos *protos);

/*
 * Keeps what BPF shipped in this round. build is what the record names, and outlives protos. 0 or
 * -ENOMEM.
 */
int protos_ship(struct protos *protos, const struct lb_rec_proto *rec, const struct lb_build *build,
		uint32_t round);

/*
 * NULL: out of memory. Valid until protos_clear(); checked against the live process once a round.
 */
const struct protos_entry *protos_get(struct protos *protos, const struct lb_build *build,
				      uint64_t addr, uint32_t fp, uint32_t round);

/*
 * Why most of the build's prototypes that were seen in this process cannot be what they are read
 * as, as a reason of losses: its layout is another. NULL: they can.
 */
const char *protos_misfit(const struct protos *protos, const struct lb_build *build);

/* In this round not all was read that BPF has sent: what is ambiguous in it is so in the next one,
 * too. */
void protos_left(struct protos *protos, uint32_t round);

/* The image has ended: what is known counts, and is not compared with anything any more. */
void protos_end(struct protos *protos);

/* Counts samples of the process, after protos_get() of what they show. */
void protos_sampled(struct protos *protos, uint32_t count);

/*
 * True if BPF may make the fingerprint of a prototype once in an epoch from now on: the process was
 * steady. Once true, samples are judged as such. False for good when a prototype that samples
 * showed was freed, or replaced by another at its address.
 */
bool protos_share(struct protos *protos, uint32_t round);

/* The name under which parent's bytecode stores the closures of a child prototype; NULL. */
const char *protos_definition(const struct protos_entry *parent, uint64_t child);

#endif

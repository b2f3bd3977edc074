/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The zones of samples. BPF reads a sample's zone out of its VM's zone stack, and sends each name
 * once. Here the stacks are found: package.loaded is read at the VM's first sample, and again in
 * each round in which it was sampled, as a module may come, go or be replaced. A sample whose zone
 * was read of another table than is there at the end of its round has an unknown zone.
 */
#ifndef SYM_ZONES_H
#define SYM_ZONES_H

#include <stdint.h>
#include <sys/types.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

struct zones;	 /* of a recording */
struct vm_zones; /* of the VMs of an image, by their global_State; NULL: of none yet */

struct zones_options {
	const char *module; /* whose table is the zone stack; NULL: each family's own */
	/* Registers with BPF where a VM has its zone stack. */
	int (*set)(void *arg, const struct lb_zone_key *key, const struct lb_zone *zone);
	void *arg;
};

int zones_new(const struct zones_options *options, struct zones **out);
void zones_free(struct zones **zones);
void vm_zones_free(struct vm_zones **vms);

/* Keeps a name that BPF sent. Returns 0 or -ENOMEM. */
int zones_name(struct zones *zones, const struct lb_rec_zone *rec);

/*
 * Returns the label of a sample's zone, readable, as long as zones lives; NULL: zones are not
 * recorded. round: zone stacks are searched once in each.
 */
const char *zones_label(struct zones *zones, struct vm_zones **vms, const struct lb_mem *mem,
			const struct lb_build *build, const struct lb_rec_sample *rec,
			uint32_t round);

/* Counts samples that were added to the profile, for zones_counts(). zones may be NULL. */
void zones_count(struct zones *zones, const char *label, uint32_t count);

/* Findings for the summary. */
struct zones_counts {
	uint64_t vms, without; /* VMs that were sampled; of these, without a zone stack */
	uint64_t unknown;      /* samples whose zone is not known */
};
void zones_counts(const struct zones *zones, struct zones_counts *out);

#endif

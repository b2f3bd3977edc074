/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins the zones of BPF's samples (bpf/zone.bpf.h) with the search for zone stacks (sym/zones.h). */
#ifndef RECORD_RECORDED_ZONES_H
#define RECORD_RECORDED_ZONES_H

#include <stdint.h>

#include <unwind/abi.h>

#include "bpf/loader.h"
#include "sym/symbolizer.h"

/* module: whose table is the zone stack; NULL: each family's own. 0 or -ENOMEM. */
int recorded_zones_open(struct loader *loader, struct symbolizer *symbolizer, const char *module);

/* Registers a build with BPF. */
int recorded_zones_build(struct loader *loader, uint32_t index, const struct lb_build *build);

#endif

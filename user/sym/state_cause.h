/* SPDX-License-Identifier: BSD-2-Clause */
/* The cause of a sample's VM state, from the detail that BPF read. */
#ifndef SYM_STATE_CAUSE_H
#define SYM_STATE_CAUSE_H

#include <stdint.h>

#include <unwind/abi.h>

#include "prof/prof.h"

/* Returns the cause that the detail of a record's state has in this build; PROF_CAUSE_NONE for an
 * unknown number. */
enum prof_cause state_cause(const struct lb_build *build, uint32_t state);

#endif

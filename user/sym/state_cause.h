/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYM_STATE_CAUSE_H
#define SYM_STATE_CAUSE_H

#include <stdint.h>

#include <unwind/abi.h>

#include "prof/prof.h"

/* What the detail of a record's state means in this build; PROF_CAUSE_NONE for an unknown number. */
enum prof_cause state_cause(const struct lb_build *build, uint32_t state);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options, read strictly: the whole text counts, no sign, no blanks, no overflow. */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A decimal number such as "1.5" in units of 10^-decimals: ("1.5", 3) is 1500. Further digits are
 * dropped. -EINVAL: not a number, -ERANGE: more than `max` units.
 */
int cli_decimal(const char *text, unsigned decimals, uint64_t max, uint64_t *value);

/*
 * Adds the pids of a list such as "12,34" (blanks separate, too, as in the output of pidof) to an
 * array that the caller frees. Skips pids that it has. The array may have grown even if it returns
 * -EINVAL (not a list of pids) or -ENOMEM.
 */
int cli_pids(const char *text, pid_t **pids, size_t *npids);

#endif

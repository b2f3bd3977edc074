/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories of runs (hook/run.c) that were killed before they could remove theirs. */
#ifndef HOOK_LEFTOVERS_H
#define HOOK_LEFTOVERS_H

#include <sys/types.h>

#define HOOK_DIRECTORY "luabpf-" /* and six characters of mkdtemp() */

/* Removes the entries of a directory that is below the directory `parent`, and itself. */
void hook_remove_directory(int parent, const char *name);

/* Removes the user's directories in `tmp` whose luabpf has ended, with the file-system IDs in effect. */
void hook_remove_leftovers(const char *tmp, uid_t user);

#endif

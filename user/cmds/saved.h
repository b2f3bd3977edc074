/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that a report is made from. They are untrusted input, and so are the chunk names in them: root
 * opens source files as the caller of sudo, or as --source-user; with neither, only files that all
 * users can read. The user whom a profile names as the process's must be able to open them, too: this
 * claim can only remove rights.
 */
#ifndef CMDS_SAVED_H
#define CMDS_SAVED_H

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"
#include "proc/source.h"

/* Opens the file as the caller of sudo, if there is one: opening a device can have effects. */
int saved_open(const char *path, FILE **file, struct error *err);

/*
 * The rights with which source files are opened. *of_users: they are those of named users. Called
 * before the file is read: NSS modules are unavailable once confined. what: for messages.
 */
int saved_sources(const struct options *opts, const char *what, struct target_source **files,
		  bool *of_users, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of a process to ELF symbols. Files are opened as the process has them mapped
 * (map_files, or its root), so that containers and deleted files work, and are cached by device,
 * inode and time of the last change.
 */
#ifndef SYM_NATIVE_H
#define SYM_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The files of all processes. They outlive the mappings below. */
struct native;

int native_new(struct native **out);
void native_free(struct native **n);

/* Returns the number of files, and the bytes that are kept of their symbols. */
size_t native_files(const struct native *n, uint64_t *bytes);

/* The executable mappings of one image of a process: read by native_learn(), else by the first
 * lookup. Symbols that were read stay when the process has ended. */
struct native_maps;

int native_maps_new(struct native *n, pid_t pid, struct native_maps **out);
void native_maps_free(struct native_maps **maps); /* some of its files stay open, for the next */

/*
 * Name of the function that covers addr. It stays valid until another of native's is called.
 * -ENOENT: no symbol covers it (stripped, JIT code); -ESRCH: the process is gone and was not seen
 * before.
 */
int native_symbol(struct native_maps *maps, uint64_t addr, const char **name);

/* The same of PUC Lua's own functions: the name under which their file registers the one that begins at addr. */
int native_registered(struct native_maps *maps, uint64_t addr, const char **name);

/*
 * Converts addr to a form that is equal in all processes: the name of the mapped file, and the
 * address in the ELF file (of another file: the offset). Code in no file, or of an ended process,
 * is NATIVE_NO_MODULE and 0. *module is valid as native_symbol()'s name is.
 */
#define NATIVE_NO_MODULE "[unknown]"
void native_offset(struct native_maps *maps, uint64_t addr, const char **module, uint64_t *offset);

/* True if addr lies in executable memory, of a file or not, or if that is not known. */
bool native_is_code(struct native_maps *maps, uint64_t addr);

/* Reads the mappings now, while the process lives; but those of one that has very many not again at
 * once, see process_maps_pause_ns(). */
int native_learn(struct native_maps *maps);

/* Copies the parent's mappings, unless those of the process itself were read. */
int native_fork(struct native_maps *maps, const struct native_maps *parent);

/* Distinguishes one set of mappings of files from another: what addresses meant may have changed when this
 * has. */
uint64_t native_maps_id(const struct native_maps *maps);

#endif

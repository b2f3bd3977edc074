/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of a process to ELF symbols. Files are opened as the process has them mapped
 * (map_files, or its root), so that containers and deleted files work, and are cached by device,
 * inode and time of the last change.
 */
#ifndef SYM_NATIVE_H
#define SYM_NATIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct native;

int native_new(struct native **out);
void native_free(struct native **n);

/*
 * Name of the function that covers addr. It stays valid until another of native's is called.
 * -ENOENT: no symbol covers it (stripped, JIT code); -ESRCH: the process is gone and was not seen
 * before.
 */
int native_symbol(struct native *n, pid_t pid, uint64_t addr, const char **name);

/*
 * Where addr lies, in a form that is the same in each process: the name of the mapped file, and the
 * address that the ELF file itself gives it (of another file: the offset). Code in no file, or of a
 * process that is gone, is NATIVE_NO_MODULE and 0. *module is valid as native_symbol()'s name is.
 */
#define NATIVE_NO_MODULE "[unknown]"
void native_place(struct native *n, pid_t pid, uint64_t addr, const char **module,
		  uint64_t *offset);

/* Does addr lie in executable memory, of a file or not? True when that cannot be told. */
bool native_is_code(struct native *n, pid_t pid, uint64_t addr);

/* Reads the mappings of pid now, while it lives; else the first lookup does. */
int native_learn(struct native *n, pid_t pid);

/* pid, unless it was read itself, has the mappings that its parent has. */
int native_fork(struct native *n, pid_t pid, pid_t parent);

/* Tells one set of mappings of files from another: what addresses meant may have changed when this
 * has. */
uint64_t native_maps_id(struct native *n, pid_t pid);

/* The process has ended, or executed another program: forget its mappings. Some of
 * the files stay open, for the next process that has them. */
void native_forget(struct native *n, pid_t pid);

#endif

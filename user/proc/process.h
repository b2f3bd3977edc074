/* SPDX-License-Identifier: BSD-2-Clause */
/* A target process from /proc: its threads, the VMs that it has mapped. */
#ifndef PROC_PROCESS_H
#define PROC_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/* Calls fn for each process, the kernel's own too. A nonzero return ends it and is returned. */
int process_each(int (*fn)(void *arg, pid_t pid), void *arg);

/* Counts the threads. -ESRCH: no such process. */
int process_count_threads(pid_t pid, size_t *n);

/* Calls fn for each thread. A nonzero return ends it and is returned. -ESRCH: no such process. */
int process_threads(pid_t pid, int (*fn)(void *arg, pid_t tid), void *arg);

/*
 * Is this the id of a process (-ENOTUNIQ: it is that of another thread of one), and may we
 * look into it? -ESRCH, -EPERM; -ENODATA: the kernel's own.
 */
int process_check(pid_t pid, struct error *err);

/*
 * Distinguishes one image of a process from another: exec draws anew where its stack and its program are. A
 * process that has the number later differs, too. 0: it has none, as it ends or is amid an exec.
 */
uint64_t process_image(pid_t pid);

/* Distinguishes a process from others that had its pid before. 0: it has ended. */
uint64_t process_start(pid_t pid);

/* Returns the same in ns since the epoch, a clock tick later at most; 0: there is no such process. */
uint64_t process_start_time(pid_t pid);

/* Returns where its stack began: differs after an exec, and equals mm->start_stack. 0: it has none. */
uint64_t process_start_stack(pid_t pid);

/* Where the text of its program is, without libraries. 0, 0: it has ended. */
void process_text(pid_t pid, uint64_t *start, uint64_t *end);

/* Returns how many pages its executable mappings have, as mm->exec_vm. 0: it has ended. */
uint32_t process_exec_pages(pid_t pid);

/* Returns its file-system user ID. -ESRCH. */
int process_uid(pid_t pid, uid_t *uid);

/*
 * -ENOTSUP: this pid namespace is not the one whose numbers BPF sees. -ENOENT: /proc is not
 * mounted.
 */
int process_check_namespace(struct error *err);

struct process_mapping {
	uint64_t start, end, offset;
	uint64_t dev, ino; /* 0, 0: of no file */
	const char *path;  /* as the process sees it, or "[vdso]"; borrowed for the call */
};

/*
 * Calls fn for each mapping whose permissions, as "rw-p", are wanted, by address. A nonzero return
 * ends it and is returned. -ESRCH: the process has ended, or has called exec, while they were read;
 * some may be missing.
 */
int process_maps(pid_t pid, bool (*wanted)(const char *perms),
		 int (*fn)(void *arg, const struct process_mapping *m), void *arg);

/*
 * A process may have a million mappings. Reading them would take a second, in which no other is
 * served: so many are read where code is looked for, twice the kernel's default for vm.max_map_count.
 */
#define PROCESS_MAPPINGS 131072

/*
 * The same for executable ones, among the first *n mappings of any kind. Then *n is how many of these
 * were read, after an error, too. process_mappings(): of files only, among the first PROCESS_MAPPINGS;
 * n: NULL, or receives how many were read.
 */
int process_code(pid_t pid, int (*fn)(void *arg, const struct process_mapping *m), void *arg,
		 size_t *n);
int process_mappings(pid_t pid, int (*fn)(void *arg, const struct process_mapping *m), void *arg,
		     size_t *n);

/* Distinguishes one set of executable mappings of files from another. 0: the process ends. *n: how
 * many were read, as of process_code(). */
uint64_t process_mapped(pid_t pid, size_t *n);

/* Returns for how long a process's mappings should not be read again after n were read: 0.6 s for 60,000. */
uint64_t process_maps_pause_ns(size_t n);

/* Makes the same of mappings that are read for another purpose; *mapped is 0 at first. */
void process_add_mapped(uint64_t *mapped, const struct process_mapping *m);

/*
 * Which content a file has, as far as its inode shows: one that is written to in place has another
 * time.
 */
struct process_file {
	uint64_t dev, ino;
	int64_t mtime, mtime_ns;
};

/*
 * The mapped file as the process sees it, also deleted ones and those of other mount namespaces.
 * process_file() needs no descriptor. -EINVAL: it is no regular file. -EREMOTE: it is on a user's
 * FUSE file system, whose daemon is not asked, as it might never answer. A file of which that is not
 * known is opened with O_PATH.
 */
int process_file(pid_t pid, const struct process_mapping *m, struct process_file *out);
int process_open_mapping(pid_t pid, const struct process_mapping *m);

/*
 * The children that run the same program: a server's workers, and its master is pid. Returns how
 * many there are, at most max.
 */
#define PROCESS_WORKERS 256 /* that a message names */
size_t process_workers(pid_t pid, pid_t *out, size_t max);
size_t process_children(pid_t pid, pid_t *out, size_t max); /* all of them */

/* Puts process ids as -p takes them. */
void process_put_pids(struct text *out, const pid_t *pids, size_t n);

/* Returns the length of a path of /proc without the " (deleted)" of a file that is removed. */
size_t process_path_len(const char *path, size_t len);

/* The executable's path as the kernel has it, foreign, cut to the buffer; "" when it has ended. */
void process_exe(pid_t pid, char *buf, size_t size);

/*
 * For messages, and foreign: the executable, before it the name that it was started by where that is
 * another, "redis-server (/usr/bin/redis-check-rdb)"; "" when it has ended.
 */
#define PROCESS_NAME 4200 /* bytes that hold any */
void process_name(pid_t pid, char *buf, size_t size);

/* Its name, which may hold any byte but NUL; "" when it has ended. */
#define PROCESS_COMM 16 /* include/linux/sched.h: TASK_COMM_LEN, an ABI */
void process_comm(pid_t pid, char comm[PROCESS_COMM]);

/*
 * Its command line, as it shows itself: arguments with blanks between, as many bytes as buf holds;
 * process_name() if it has none. Foreign.
 */
void process_command(pid_t pid, char *buf, size_t size);

#endif

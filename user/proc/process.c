// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pager.h"
#include "process.h"

/* Calls fn for each entry of a directory whose name is a number. */
static int each_number(const char *path, int (*fn)(void *arg, pid_t id), void *arg)
{
	DIR *dir __closedir = opendir(path);
	struct dirent *entry;
	int r;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = fn(arg, (pid_t)strtol(entry->d_name, NULL, 10));
		if (r)
			return r;
	}
	return 0;
}

int process_each(int (*fn)(void *arg, pid_t pid), void *arg)
{
	return each_number("/proc", fn, arg);
}

int process_threads(pid_t pid, int (*fn)(void *arg, pid_t tid), void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return each_number(path, fn, arg);
}

static int count_one(void *arg, pid_t tid)
{
	(void)tid;
	++*(size_t *)arg;
	return 0;
}

int process_count_threads(pid_t pid, size_t *n)
{
	*n = 0;
	return process_threads(pid, count_one, n);
}

/* include/linux/proc_ns.h: PROC_PID_INIT_INO, an ABI since namespaces have numbers. */
#define ROOT_PID_NAMESPACE 0xeffffffcU

int process_check_namespace(struct error *err)
{
	struct stat st;

	if (stat("/proc/self", &st)) {
		error_set(err, -ENOENT, "/proc: not mounted: luabpf looks into processes there");
		return error_remedy(err, -ENOENT, "mount -t proc proc /proc");
	}
	if (stat("/proc/self/ns/pid", &st) || st.st_ino == ROOT_PID_NAMESPACE)
		return 0;
	error_set(err, -ENOTSUP,
		  "this is a container (a pid namespace of its own): process numbers "
		  "here are not the kernel's");
	return error_remedy(
		err, -ENOTSUP,
		"run luabpf on the host, with the process number that it has there; or in a "
		"container with the host's pid namespace: --pid=host");
}

static int explain_refused(pid_t pid, int r, struct error *err)
{
	int missing = caps_missing(CAPS_SYS_PTRACE);

	if (missing) {
		error_set(err, r, "pid %d: not permitted to look into it; %s", (int)pid,
			  missing < 0 ? "this process is not root"
				      : "this process lacks CAP_SYS_PTRACE");
		return error_remedy(err, r, "run as root (sudo luabpf ...)");
	}
	if (caps_in_container()) {
		error_set(err, r, "pid %d: not permitted to look into it from this container",
			  (int)pid);
		return error_remedy(err, r, "run luabpf as root of the host");
	}
	error_set(err, r, "pid %d: the kernel lets no process look into it, CAP_SYS_PTRACE or not",
		  (int)pid);
	return error_remedy(err, r,
			    "a security module (AppArmor, SELinux, Yama) protects this process");
}

/*
 * Its memory and files are open to whom ptrace(2) "Ptrace access mode checking" lets. No memory is
 * at address 1: who may read it gets -EFAULT.
 */
static int check_access(pid_t pid, struct error *err)
{
	struct iovec local = {.iov_base = &(char){0}, .iov_len = 1};
	struct iovec remote = {.iov_base = (void *)1, .iov_len = 1};

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno == EPERM)
		return explain_refused(pid, -EPERM, err);
	return 0;
}

/* include/linux/sched.h; in /proc/PID/stat, an ABI: proc_pid_stat(5), flags */
#define PF_KTHREAD 0x00200000

size_t process_path_len(const char *path, size_t len)
{
	static const char deleted[] = " (deleted)";
	const size_t suffix = sizeof(deleted) - 1;

	if (len > suffix && !memcmp(path + len - suffix, deleted, suffix))
		len -= suffix;
	return len;
}

/* Reads /proc/PID/NAME, at most size - 1 bytes and a NUL. Returns how many; 0 if it cannot be read. */
static size_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	FILE *f __fclose = NULL;
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (f)
		n = fread(buf, 1, size - 1, f);
	buf[n] = '\0';
	return n;
}

/* Returns the fields after the name, which may hold any byte; NULL if it cannot be read. */
static const char *read_stat(pid_t pid, char *line, size_t size)
{
	const char *rest;

	read_proc(pid, "stat", line, size);
	rest = strrchr(line, ')');
	return rest ? rest + 1 : NULL;
}

static bool is_kernel_thread(pid_t pid)
{
	char line[1024];
	const char *rest = read_stat(pid, line, sizeof(line));
	unsigned flags;

	return rest && sscanf(rest, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & PF_KTHREAD;
}

/* Fields of /proc/PID/stat, proc_pid_stat(5). */
struct image_fields {
	uint64_t start, code, end, stack; /* starttime, startcode, endcode, startstack */
};

static bool read_image(pid_t pid, struct image_fields *f)
{
	char line[1024];
	const char *rest = read_stat(pid, line, sizeof(line));

	return rest &&
	       sscanf(rest,
		      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		      "%*d %*d %" SCNu64 " %*u %*d %*u %" SCNu64 " %" SCNu64 " %" SCNu64,
		      &f->start, &f->code, &f->end, &f->stack) == 4;
}

uint64_t process_start(pid_t pid)
{
	struct image_fields f;

	return read_image(pid, &f) ? f.start + 1 : 0; /* the first process started at 0 */
}

uint64_t process_start_time(pid_t pid)
{
	uint64_t ticks = process_start(pid), hz = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t boot = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

	return ticks ? boot + ticks * 1000000000 / hz : 0;
}

uint64_t process_start_stack(pid_t pid)
{
	struct image_fields f;

	return read_image(pid, &f) ? f.stack : 0;
}

void process_text(pid_t pid, uint64_t *start, uint64_t *end)
{
	struct image_fields f;
	bool known = read_image(pid, &f);

	*start = known ? f.code : 0;
	*end = known ? f.end : 0;
}

#define MIX 0x9e3779b97f4a7c15ULL

/* exec clears startstack and startcode with the old image, and sets startcode last, when all of the new one is mapped. */
uint64_t process_image(pid_t pid)
{
	struct image_fields f;

	if (!read_image(pid, &f) || !f.stack || !f.code)
		return 0;
	return ((f.start * MIX ^ f.code) * MIX ^ f.end) * MIX ^ f.stack;
}

/* proc_pid_status(5): "Size of text segments" and "Shared library code size" add up to mm->exec_vm. */
uint32_t process_exec_pages(pid_t pid)
{
	static const char *const parts[] = {"\nVmExe:", "\nVmLib:"};
	uint64_t kib = 0;
	char buf[4096];

	if (!read_proc(pid, "status", buf, sizeof(buf)))
		return 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *part = strstr(buf, parts[i]);

		if (!part)
			return 0;
		kib += strtoull(part + strlen(parts[i]), NULL, 10);
	}
	return (uint32_t)(kib * 1024 / (uint64_t)sysconf(_SC_PAGESIZE));
}

int process_check(pid_t pid, struct error *err)
{
	FILE *f __fclose = NULL;
	char path[64], line[256];
	int tgid = -1, zombie = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f && (errno == EMFILE || errno == ENFILE))
		return error_set(err, -errno, "pid %d: %s: %s", (int)pid, path, strerror(errno));
	if (!f)
		return error_set(err, -ESRCH, "pid %d: no such process", (int)pid);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Tgid: %d", &tgid);
		zombie |= !strncmp(line, "State:\tZ", 8);
	}
	if (tgid != pid) {
		error_set(err, -ENOTUNIQ, "pid %d: a thread of process %d", (int)pid, tgid);
		return error_remedy(err, -ENOTUNIQ, "luabpf -p %d", tgid);
	}
	if (zombie)
		return error_set(err, -ESRCH, "pid %d: the process, or its main thread, has ended",
				 (int)pid);
	if (is_kernel_thread(pid))
		return error_set(err, -ENODATA,
				 "pid %d: a thread of the kernel: it runs no program", (int)pid);
	return check_access(pid, err);
}

int process_uid(pid_t pid, uid_t *uid)
{
	char status[1024];
	const char *line;

	read_proc(pid, "status", status, sizeof(status));
	line = strstr(status, "\nUid:"); /* the name has its line feeds escaped */
	return line && sscanf(line, "\nUid: %*u %*u %*u %u", uid) == 1 ? 0 : -ESRCH;
}

/* "55d0c0a00000-55d0c0a2a000 r-xp 00007000 fe:00 11305939   /usr/bin/lua5.4" */
static bool parse_mapping(char *line, bool (*wanted)(const char *perms), struct process_mapping *m)
{
	const char *perms = strchr(line, ' ');
	unsigned major, minor;
	int path = 0;

	/* a program may have tens of thousands of others */
	if (!perms || strnlen(perms, 5) < 5 || !wanted(perms + 1))
		return false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->start,
		   &m->end, &m->offset, &major, &minor, &m->ino, &path) < 6)
		return false;
	m->dev = makedev(major, minor);
	line[strcspn(line, "\n")] = '\0';
	m->path = line + path;
	return true;
}

#define MAPS_READ 4096 /* bytes that the kernel makes at a time; its st_blksize says 1024 */

/* Reads *n of them at most; then *n is how many were read. */
static int read_maps(pid_t pid, bool (*wanted)(const char *perms),
		     int (*fn)(void *arg, const struct process_mapping *m), void *arg, size_t *n)
{
	FILE *f __fclose = NULL;
	char *line __free = NULL;
	char path[64], buf[MAPS_READ], first;
	size_t size = 0, most = *n;

	*n = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	setvbuf(f, buf, _IOFBF, sizeof(buf));
	for (; *n < most && getline(&line, &size, f) > 0; ++*n) {
		struct process_mapping m;
		int r;

		if (!parse_mapping(line, wanted, &m))
			continue;
		r = fn(arg, &m);
		if (r)
			return r;
	}
	/* each read() asks for the memory anew: without it the file ends where it was read last */
	return pread(fileno(f), &first, 1, 0) == 1 ? 0 : -ESRCH;
}

int process_maps(pid_t pid, bool (*wanted)(const char *perms),
		 int (*fn)(void *arg, const struct process_mapping *m), void *arg)
{
	size_t n = SIZE_MAX;

	return read_maps(pid, wanted, fn, arg, &n);
}

static bool is_code(const char *perms)
{
	return perms[2] == 'x';
}

int process_code(pid_t pid, int (*fn)(void *arg, const struct process_mapping *m), void *arg,
		 size_t *n)
{
	return read_maps(pid, is_code, fn, arg, n);
}

struct of_files {
	int (*fn)(void *arg, const struct process_mapping *m);
	void *arg;
};

static int if_of_file(void *arg, const struct process_mapping *m)
{
	const struct of_files *o = arg;

	return m->ino ? o->fn(o->arg, m) : 0;
}

int process_mappings(pid_t pid, int (*fn)(void *arg, const struct process_mapping *m), void *arg,
		     size_t *n)
{
	struct of_files o = {fn, arg};
	size_t unused;

	n = n ? n : &unused;
	*n = PROCESS_MAPPINGS;
	return process_code(pid, if_of_file, &o, n);
}

#define MAPPED_PATH 4200

static const char *in_map_files(pid_t pid, const struct process_mapping *m, char path[MAPPED_PATH])
{
	snprintf(path, MAPPED_PATH, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->start,
		 m->end);
	return path;
}

static const char *in_exe(pid_t pid, char path[MAPPED_PATH])
{
	snprintf(path, MAPPED_PATH, "/proc/%d/exe", (int)pid);
	return path;
}

static const char *in_root(pid_t pid, const struct process_mapping *m, char path[MAPPED_PATH])
{
	snprintf(path, MAPPED_PATH, "/proc/%d/root%s", (int)pid, m->path);
	return path;
}

static const char *in_own_root(const struct process_mapping *m, char path[MAPPED_PATH])
{
	snprintf(path, MAPPED_PATH, "%s", m->path);
	return path;
}

#define FEW_MAPPINGS 5000 /* are read within 2 ms */
#define MAPPING_PAUSE_NS 10000

uint64_t process_maps_pause_ns(size_t n)
{
	return n > FEW_MAPPINGS ? n * MAPPING_PAUSE_NS : 0;
}

void process_add_mapped(uint64_t *mapped, const struct process_mapping *m)
{
	const uint64_t words[] = {m->start, m->end, m->offset, m->dev, m->ino};
	uint64_t h = *mapped;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		h = (h ^ words[i]) * MIX;
		h ^= h >> 32;
	}
	*mapped = h | 1;
}

static int add_mapping(void *arg, const struct process_mapping *m)
{
	process_add_mapped(arg, m);
	return 0;
}

uint64_t process_mapped(pid_t pid, size_t *n)
{
	uint64_t mapped = 0;

	return process_mappings(pid, add_mapping, &mapped, n) ? 0 : mapped;
}

/*
 * Neither this nor O_PATH asks a FUSE file system's daemon anything. -EREMOTE: the file is on a
 * user's, which would be asked by more than that, and might never answer.
 */
static int stat_quietly(int dir, const char *path, struct statx *st)
{
	if (statx(dir, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, st))
		return -errno;
	return pager_is_file_system(makedev(st->stx_dev_major, st->stx_dev_minor)) ? -EREMOTE : 0;
}

/* stat() of overlayfs and btrfs shows another device than the mapping, but none of a disk. */
static bool is_mapped_file(const struct statx *st, const struct process_mapping *m)
{
	return st->stx_ino == m->ino && (makedev(st->stx_dev_major, st->stx_dev_minor) == m->dev ||
					 (!st->stx_dev_major && !major(m->dev)));
}

/* Before Linux 6.8 a mapping of overlayfs shows the device and the inode of a layer. */
static bool may_be_mapped_file(const struct statx *st, const struct process_mapping *m)
{
	return is_mapped_file(st, m) || !st->stx_dev_major;
}

/* True if the kernel has the same path for both. */
static bool is_exe_path(pid_t pid, const struct process_mapping *m)
{
	char exe[MAPPED_PATH];

	process_exe(pid, exe, sizeof(exe));
	return *exe && !strcmp(exe, m->path);
}

/*
 * The kernel gives a mapping's path as it is in luabpf's root directory, or in that of another mount
 * namespace. A process that has called chroot() has another root directory than either.
 */
static int stat_by_path(pid_t pid, const struct process_mapping *m, char path[MAPPED_PATH],
			struct statx *st)
{
	struct statx rooted;
	int r = stat_quietly(AT_FDCWD, in_root(pid, m, path), &rooted);

	if (r == -EREMOTE)
		return r;
	if ((r || !is_mapped_file(&rooted, m)) &&
	    !stat_quietly(AT_FDCWD, in_own_root(m, path), st) && is_mapped_file(st, m))
		return 0;
	in_root(pid, m, path);
	if (!r && !may_be_mapped_file(&rooted, m))
		return -ENOENT;
	*st = rooted;
	return r;
}

/*
 * map_files needs CAP_CHECKPOINT_RESTORE; exe does not. By its path only where that is no way into
 * such a file system.
 */
static int stat_mapping(pid_t pid, const struct process_mapping *m, char path[MAPPED_PATH],
			struct statx *st)
{
	int r = stat_quietly(AT_FDCWD, in_map_files(pid, m, path), st);

	if (!r || r == -EREMOTE)
		return r;
	r = stat_quietly(AT_FDCWD, in_exe(pid, path), st);
	if (!r && (is_mapped_file(st, m) || (may_be_mapped_file(st, m) && is_exe_path(pid, m))))
		return 0;
	return pager_is_file_system(m->dev) ? -EREMOTE : stat_by_path(pid, m, path, st);
}

int process_file(pid_t pid, const struct process_mapping *m, struct process_file *out)
{
	char path[MAPPED_PATH];
	struct statx st;
	int r = stat_mapping(pid, m, path, &st);

	if (r)
		return r;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	*out = (struct process_file){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.mtime = st.stx_mtime.tv_sec,
		.mtime_ns = st.stx_mtime.tv_nsec,
	};
	return 0;
}

int process_open_mapping(pid_t pid, const struct process_mapping *m)
{
	char path[MAPPED_PATH];
	int at __close = -1, fd, r;
	struct statx found, st;

	r = stat_mapping(pid, m, path, &found);
	if (r)
		return r;
	at = open(path, O_PATH | O_CLOEXEC);
	r = at < 0 ? -errno : stat_quietly(at, "", &st);
	if (r)
		return r;
	if (st.stx_ino != found.stx_ino || st.stx_dev_major != found.stx_dev_major ||
	    st.stx_dev_minor != found.stx_dev_minor) /* it was replaced meanwhile */
		return -ENOENT;
	if (!st.stx_dev_major && pager_in_use()) /* no disk's: it may be an overlay on FUSE */
		return TAKE_FD(at);
	snprintf(path, MAPPED_PATH, "/proc/self/fd/%d", at);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 ? fd : -errno;
}

void process_exe(pid_t pid, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
}

#define COMM_MAX (PROCESS_COMM - 1)

void process_comm(pid_t pid, char comm[PROCESS_COMM])
{
	char line[PROCESS_COMM + 1];
	size_t n = read_proc(pid, "comm", line, sizeof(line)); /* it may hold line feeds */

	line[n ? n - 1 : 0] = '\0';
	memcpy(comm, line, PROCESS_COMM);
}

void process_name(pid_t pid, char *buf, size_t size)
{
	char exe[PROCESS_NAME - COMM_MAX - 4], comm[PROCESS_COMM];
	const char *base;

	process_exe(pid, exe, sizeof(exe));
	process_comm(pid, comm);
	base = strrchr(exe, '/');
	if (!*exe || !*comm || !strncmp(base ? base + 1 : exe, comm, COMM_MAX))
		snprintf(buf, size, "%s", *exe ? exe : comm);
	else
		snprintf(buf, size, "%s (%s)", comm, exe);
}

void process_command(pid_t pid, char *buf, size_t size)
{
	size_t n = read_proc(pid, "cmdline", buf, size);

	for (size_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n] = '\0';
	if (!n)
		process_name(pid, buf, size);
}

/* ---- workers --------------------------------------------------------------------------------- */

struct children {
	bool workers;	  /* those of the same program only */
	struct statx exe; /* that of their parent */
	pid_t pid, *out;
	size_t n, max;
};

static int exe_stat(pid_t pid, struct statx *st)
{
	char path[MAPPED_PATH];

	return stat_quietly(AT_FDCWD, in_exe(pid, path), st);
}

static bool is_wanted(const struct children *c, pid_t child)
{
	struct statx st;

	return !c->workers ||
	       (!exe_stat(child, &st) && st.stx_dev_major == c->exe.stx_dev_major &&
		st.stx_dev_minor == c->exe.stx_dev_minor && st.stx_ino == c->exe.stx_ino);
}

/* The children of one thread: the kernel lists them by whom they were forked. */
static int children_of_thread(void *arg, pid_t tid)
{
	struct children *c = arg;
	FILE *list __fclose;
	char path[96];
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)c->pid, (int)tid);
	list = fopen(path, "re");
	while (list && c->n < c->max && fscanf(list, "%d", &child) == 1)
		if (is_wanted(c, child))
			c->out[c->n++] = child;
	return 0;
}

size_t process_workers(pid_t pid, pid_t *out, size_t max)
{
	struct children c = {.workers = true, .pid = pid, .out = out, .max = max};

	if (!exe_stat(pid, &c.exe))
		process_threads(pid, children_of_thread, &c);
	return c.n;
}

size_t process_children(pid_t pid, pid_t *out, size_t max)
{
	struct children c = {.pid = pid, .out = out, .max = max};

	process_threads(pid, children_of_thread, &c);
	return c.n;
}

void process_put_pids(struct text *out, const pid_t *pids, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		text_printf(out, "%s%d", i ? "," : "", (int)pids[i]);
}

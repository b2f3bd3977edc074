// SPDX-License-Identifier: BSD-2-Clause
/*
 * The directory, in memory where there is /dev/shm, and the environment. All that is done with files
 * is done with the rights of the user who owns the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/fsids.h"
#include "hook_init.lua.h"
#include "leftovers.h"
#include "state.h"

struct hook_run {
	struct fsids *ids; /* NULL: our own */
	enum hook_mode mode;
	char dir[PATH_MAX];
	int dir_fd;
	int alive; /* locked while we live */
	struct hook_state **states;
	size_t nstates;
	struct hook_state *by_name;
	uint64_t unread;
	int failed;	 /* errno of a state that could not make its file */
	uint64_t budget; /* bytes that the states may still take */
};

#define MEMORY_MAX (1ULL << 30)

static const char *const init_names[] = {"LUA_INIT", "LUA_INIT_5_2", "LUA_INIT_5_3", "LUA_INIT_5_4",
					 "LUA_INIT_5_5"};

/* Beside luabpf in a build's directory, or below the prefix where it is installed. */
static int find_modules(char *path, size_t size, struct error *err)
{
	static const char *const folders[] = {"lib/lua", "../lib/lua"};
	char exe[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return error_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	*slash = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		static const char *const versions[] = {"5.1", "5.2", "5.3", "5.4", "5.5"};

		for (size_t v = 0; v < sizeof(versions) / sizeof(*versions); v++) {
			snprintf(path, size, "%s/%s/%s/luabpf/hook.so", exe, folders[i],
				 versions[v]);
			if (access(path, R_OK))
				continue;
			snprintf(path, size, "%s/%s", exe, folders[i]);
			return 0;
		}
	}
	error_set(err, -ENOENT, "%s/../lib/lua/VERSION/luabpf/hook.so: no such file for any Lua",
		  exe);
	return error_remedy(err, -ENOENT,
			    "make install puts it there, for each Lua whose headers "
			    "were there when luabpf was built");
}

static int make_directory(struct hook_run *run, struct error *err)
{
	const char *tmp = getenv("TMPDIR");
	struct stat st;

	if (!access("/dev/shm", W_OK | X_OK))
		tmp = "/dev/shm";
	if (!tmp || !*tmp)
		tmp = "/tmp";
	snprintf(run->dir, sizeof(run->dir), "%s/" HOOK_DIRECTORY "XXXXXX", tmp);
	if (!mkdtemp(run->dir)) {
		int ret = error_set(err, -errno, "%s: %s", run->dir, strerror(errno));

		run->dir[0] = '\0';
		return ret;
	}
	run->dir_fd = open(run->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (run->dir_fd < 0)
		return error_set(err, -errno, "%s: %s", run->dir, strerror(errno));
	run->alive = openat(run->dir_fd, HOOK_ALIVE, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (run->alive < 0 || flock(run->alive, LOCK_EX | LOCK_NB))
		return error_set(err, -errno, "%s/" HOOK_ALIVE ": %s", run->dir, strerror(errno));
	if (!fstat(run->dir_fd, &st))
		hook_remove_leftovers(tmp, st.st_uid);
	return 0;
}

/* Under another luabpf, LUA_INIT is ours already, and the user's own stays where it was saved. */
static int set_init(const char *name)
{
	const char *own = getenv(name);
	char saved[64];

	snprintf(saved, sizeof(saved), HOOK_ENV_USER "%s", name);
	if (own && strcmp(own, hook_init_code) && setenv(saved, own, 1))
		return -errno;
	return setenv(name, hook_init_code, 1) ? -errno : 0;
}

static int set_environment(const struct hook_run *run, enum hook_mode mode, struct error *err)
{
	char modules[PATH_MAX + 64];
	int ret = find_modules(modules, sizeof(modules), err);

	if (ret)
		return ret;
	if (setenv(HOOK_ENV_DIR, run->dir, 1) || setenv(HOOK_ENV_LIB, modules, 1) ||
	    setenv(HOOK_ENV_MODE, mode == HOOK_TRACE ? "trace" : "count", 1))
		return error_set(err, -errno, "environment: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(init_names) / sizeof(*init_names); i++) {
		ret = set_init(init_names[i]);
		if (ret)
			return error_set(err, ret, "environment: %s", strerror(-ret));
	}
	return 0;
}

int hook_run_open(enum hook_mode mode, struct hook_run **out, struct error *err)
{
	__hook_run struct hook_run *run = calloc(1, sizeof(*run));
	struct fsids *before __fsids = NULL;
	int ret;

	if (!run)
		return error_set(err, -ENOMEM, "out of memory");
	run->dir_fd = run->alive = -1;
	run->budget = MEMORY_MAX;
	run->mode = mode;
	ret = fsids_of_caller(&run->ids, err);
	if (ret)
		return ret;
	ret = fsids_enter(run->ids, &before);
	if (ret)
		return error_set(err, ret, "file-system IDs of sudo's caller: %s", strerror(-ret));
	ret = make_directory(run, err);
	if (!ret)
		ret = set_environment(run, mode, err);
	if (ret)
		return ret;
	*out = TAKE_PTR(run);
	return 0;
}

static void remove_directory(struct hook_run *run)
{
	struct fsids *before __fsids = NULL;

	if (!fsids_enter(run->ids, &before))
		hook_remove_directory(AT_FDCWD, run->dir);
}

void hook_run_free(struct hook_run **out)
{
	struct hook_run *run = *out;

	if (!run)
		return;
	if (run->dir[0])
		remove_directory(run);
	cleanup_fd(&run->alive);
	cleanup_fd(&run->dir_fd);
	HASH_CLEAR(hh, run->by_name);
	for (size_t i = 0; i < run->nstates; i++)
		hook_state_free(run->states[i]);
	free(run->states);
	free(run->ids);
	free(run);
	*out = NULL;
}

static int add_state(struct hook_run *run, const char *name, struct hook_state **out)
{
	struct hook_state *st;

	if (array_grow(&run->states, run->nstates, sizeof(*run->states)))
		return -ENOMEM;
	st = calloc(1, sizeof(*st));
	if (!st)
		return -ENOMEM;
	snprintf(st->name, sizeof(st->name), "%s", name);
	run->states[run->nstates++] = st;
	HASH_ADD_STR(run->by_name, name, st);
	if (!st->hh.tbl)
		return -ENOMEM;
	*out = st;
	return 0;
}

/* A file of the user's alone: the tail is written into it. */
static int open_file(const struct hook_run *run, const char *name)
{
	int fd = openat(run->dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st, dir;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || fstat(run->dir_fd, &dir) || !S_ISREG(st.st_mode) ||
	    st.st_nlink != 1 || st.st_uid != dir.st_uid) {
		close(fd);
		return -1;
	}
	return fd;
}

static int poll_file(struct hook_run *run, const char *name, hook_events_fn fn, void *arg)
{
	int fd __close = open_file(run, name);
	struct hook_state *st;
	int ret = 0;

	HASH_FIND_STR(run->by_name, name, st);
	if (!st &&
	    (fd < 0 || strlen(name) >= sizeof(st->name) || run->nstates >= HOOK_STATES_MAX)) {
		run->unread++;
		return 0;
	}
	if (!st)
		ret = add_state(run, name, &st);
	if (ret)
		return ret;
	if (fd < 0) {
		st->broken = true;
		return 0;
	}
	return hook_state_read(st, fd, fn, arg, &run->budget);
}

/* The link's text is the target's: each number becomes one from 1 to 4095. */
static int read_failure(const struct hook_run *run)
{
	char text[16] = "";

	if (readlinkat(run->dir_fd, HOOK_FAILED, text, sizeof(text) - 1) <= 0)
		return 0;
	return strtol(text, NULL, 10) & 0xfff ?: EIO;
}

int hook_run_poll(struct hook_run *run, hook_events_fn fn, void *arg, struct error *err)
{
	struct fsids *before __fsids = NULL;
	DIR *dir __closedir = NULL;
	struct dirent *entry;
	int ret;

	ret = fsids_enter(run->ids, &before);
	if (ret)
		return error_set(err, ret, "file-system IDs of sudo's caller: %s", strerror(-ret));
	dir = opendir(run->dir);
	if (!dir)
		return error_set(err, -errno, "%s: %s", run->dir, strerror(errno));
	run->unread = 0;
	run->failed = read_failure(run);
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, HOOK_ALIVE) &&
		    strcmp(entry->d_name, HOOK_FAILED))
			ret = poll_file(run, entry->d_name, fn, arg);
	return ret == -ENOMEM ? error_set(err, ret, "out of memory") : ret;
}

size_t hook_run_nstates(const struct hook_run *run)
{
	return run->nstates;
}

struct hook_state *hook_run_state(const struct hook_run *run, size_t i)
{
	return run->states[i];
}

uint64_t hook_run_unread(const struct hook_run *run)
{
	return run->unread;
}

int hook_run_failed(const struct hook_run *run)
{
	return run->failed;
}

static int fail(const struct hook_run *run, const char *command, struct error *err)
{
	unsigned long long size = run->mode == HOOK_TRACE ? HOOK_TRACE_SIZE : HOOK_COUNT_SIZE;
	int ret = error_set(err, -run->failed,
			    "%s: the hook module cannot make its file in %s, of %llu bytes: %s",
			    command, run->dir, size, strerror(run->failed));

	if (run->failed != EFBIG)
		return ret;
	return error_remedy(err, ret, "raise the limit of a file's size: ulimit -f %llu, or more",
			    (size + 511) / 512);
}

int hook_run_check(const struct hook_run *run, const char *command, struct error *err)
{
	if (run->nstates)
		return 0;
	if (run->failed)
		return fail(run, command, err);
	error_set(err, -ENOENT, "%s: no Lua interpreter in it has loaded the hook module", command);
	return error_remedy(err, -ENOENT,
			    "lua -E ignores LUA_INIT, which loads it; a host that embeds Lua calls "
			    "require \"luabpf.hook\"");
}

/* It has the file mapped: another process may have its number, in another PID namespace. */
bool hook_state_runs(const struct hook_run *run, const struct hook_state *st)
{
	char path[64], file[PATH_MAX + 64], line[2 * PATH_MAX];
	__fclose FILE *maps = NULL;
	bool runs = false;

	snprintf(path, sizeof(path), "/proc/%u/maps", st->header.pid);
	snprintf(file, sizeof(file), "%s/%s\n", run->dir, st->name);
	maps = fopen(path, "re");
	while (maps && !runs && fgets(line, sizeof(line), maps))
		runs = strstr(line, file);
	return runs;
}

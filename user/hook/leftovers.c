// SPDX-License-Identifier: BSD-2-Clause
#include "leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "hook/abi.h"

/* A run makes its file, and then locks it: seconds that it may take at most. */
#define YOUNG 60

void hook_remove_directory(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir __closedir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (unlinkat(fd, entry->d_name, 0))
			unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* A luabpf that lives holds the lock of its file. alive: locked here if not. */
static bool has_ended(int parent, const char *name, uid_t user, int *alive)
{
	int dir __close = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) || st.st_uid != user)
		return false;
	*alive = openat(dir, HOOK_ALIVE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return *alive >= 0 && !fstat(*alive, &st) && S_ISREG(st.st_mode) && st.st_uid == user &&
	       st.st_mtime + YOUNG < time(NULL) && !flock(*alive, LOCK_EX | LOCK_NB);
}

void hook_remove_leftovers(const char *tmp, uid_t user)
{
	int parent = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir __closedir = parent < 0 ? NULL : fdopendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int alive __close = -1;

		if (strncmp(entry->d_name, HOOK_DIRECTORY, strlen(HOOK_DIRECTORY)) != 0)
			continue;
		if (has_ended(parent, entry->d_name, user, &alive))
			hook_remove_directory(parent, entry->d_name);
	}
}

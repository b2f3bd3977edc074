// SPDX-License-Identifier: BSD-2-Clause
#include "usage.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"

size_t usage_resident_bytes(void)
{
	FILE *f __fclose = fopen("/proc/self/statm", "re");
	unsigned long size, resident;

	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		return 0;
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t usage_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	size_t n = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n ? n - 1 : 0; /* the directory's own */
}

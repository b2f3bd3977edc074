// SPDX-License-Identifier: BSD-2-Clause
#include <sys/stat.h>

#include "source_file.h"

#define NSEC_PER_SEC 1000000000LL

bool source_file_is_same(const struct fsids *ids, const struct program_source *source)
{
	__fsids struct fsids *own = NULL;
	struct stat st;

	if (!source->has_stamp) /* of luatrace's own files: nothing says so */
		return true;
	if (fsids_enter(ids, &own) || stat(source->path, &st))
		return false;
	return (uint64_t)st.st_size == source->size &&
	       st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec == source->mtime_ns;
}

bool source_file_exists(const struct fsids *ids, const char *path)
{
	__fsids struct fsids *own = NULL;
	struct stat st;

	return !fsids_enter(ids, &own) && !stat(path, &st) && S_ISREG(st.st_mode);
}

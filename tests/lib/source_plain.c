// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "source_plain.h"

#define MAX_SOURCE (64L << 20) /* a line is held in memory, and it may be all of a file */

int source_open_plain(void *ctx, const char *path, FILE **out)
{
	__close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	FILE *file;

	(void)ctx;
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > MAX_SOURCE)
		return -EFBIG;
	file = fdopen(fd, "r");
	if (!file)
		return -errno;
	fd = -1;
	*out = file;
	return 0;
}

const struct source source_plain = {.open = source_open_plain};

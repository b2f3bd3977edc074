// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "file_bytes.h"

bool file_bytes_read(const char *path, struct file_bytes *f)
{
	FILE *in __fclose = fopen(path, "re");
	long len;

	if (!in || fseek(in, 0, SEEK_END))
		return false;
	len = ftell(in);
	if (len <= 0)
		return false;
	rewind(in);
	f->len = (size_t)len;
	f->bytes = malloc(f->len);
	if (f->bytes && fread(f->bytes, 1, f->len, in) == f->len)
		return true;
	free(f->bytes);
	f->bytes = NULL;
	return false;
}

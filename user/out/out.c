// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "folded.h"
#include "out.h"
#include "prof/pprof.h"

const struct out_format out_formats[] = {
	{"pprof", "profile.proto, gzip: all that was recorded; luabpf report reads it",
	 ".pb.gz .pprof", true, true, pprof_write},
	{"folded", "folded stacks for flame graph tools", ".folded .collapsed", false, false,
	 folded_write},
	{NULL, NULL, NULL, false, false, NULL},
};

const struct out_format *out_format_named(const char *name)
{
	for (const struct out_format *f = out_formats; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
	}
	return NULL;
}

static bool has_suffix(const char *path, const char *suffixes)
{
	size_t len = strlen(path);

	while (*suffixes) {
		size_t n = strcspn(suffixes, " ");

		if (len > n && !memcmp(path + len - n, suffixes, n))
			return true;
		suffixes += n + strspn(suffixes + n, " ");
	}
	return false;
}

const struct out_format *out_format_of_file(const char *path)
{
	for (const struct out_format *f = out_formats; f->name; f++) {
		if (has_suffix(path, f->suffixes))
			return f;
	}
	return NULL;
}

// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a pprof file: refused, or a profile that every report renders and that survives a
 * save. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "out/folded.h"
#include "out/jitp.h"
#include "prof/pprof.h"

static int no_source(void *ctx, const char *path, FILE **out)
{
	(void)ctx;
	(void)path;
	(void)out;
	return -ENOENT;
}

static void render(const struct prof *prof)
{
	static const char *const views[] = {"F", "fl5", "vf", "-3sr", "G", "aAm0", "vlpm0"};
	struct source source = {.open = no_source};
	__fclose FILE *out = fopen("/dev/null", "w");

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		struct jitp_options options;

		if (jitp_options(views[i], &options, NULL) ||
		    jitp_render(prof, &options, &source, out))
			abort();
	}
	if (folded_write(prof, out))
		abort();
}

static void save_and_load(const struct prof *prof)
{
	__free char *data = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&data, &len);
	struct prof *again = NULL;

	if (!out || pprof_write(prof, out))
		abort();
	fclose(out);
	if (pprof_read(data, len, "again", &again, NULL))
		abort();
	if (prof_samples(again) != prof_samples(prof) || prof_nrows(again) != prof_nrows(prof))
		abort();
	prof_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prof *prof = NULL;
	struct error err = {0};

	if (pprof_read(data, size, "fuzz", &prof, &err)) {
		if (!err.what[0] || prof)
			abort();
		return 0;
	}
	render(prof);
	save_and_load(prof);
	prof_free(&prof);
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
/* Any string after -jp=: parsed within its bounds, and what comes out can be rendered. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "out/jitp.h"
#include "source_plain.h"

static struct prof *small_profile(void)
{
	struct prof_labels labels = {.vmstate = 'N'};
	struct prof *prof = NULL;
	uint32_t ids[3];

	if (prof_new(&prof))
		abort();
	for (uint32_t i = 0; i < 3; i++) {
		struct prof_frame frame = {
			.kind = PROF_LUA, .chunk = "=x < y", .firstline = i, .line = i};

		if (prof_frame_id(prof, &frame, &ids[i]) ||
		    prof_add(prof, ids, i + 1, &labels, i + 1))
			abort();
	}
	return prof;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	__free char *text = strndup((const char *)data, size);
	__fclose FILE *out = fopen("/dev/null", "w");
	struct jitp_options options;
	struct prof *prof;

	if (!text || !out)
		abort();
	if (jitp_options(text, &options, NULL))
		return 0;
	if (options.interval_ms < 1 || options.min < 0 || options.depth == INT32_MIN)
		abort();
	prof = small_profile();
	if (jitp_render(prof, &options, &source_plain, out))
		abort();
	prof_free(&prof);
	return 0;
}

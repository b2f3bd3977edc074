// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target's memory out of the fuzzer: prototypes and library tables. Input: two offsets (of a
 * prototype and of a global_State), then the memory, which lies at a fixed address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "base/mem_image.h"
#include "fuzz_sym.h"
#include "lua/lj/ffnames.h"
#include "lua/lj/proto.h"

static const struct lj_layout layout = {.registrytv = 0x40, .str_len = LJ_STR_LEN};

static void ask(const struct lj_proto *p)
{
	uint32_t n = lj_proto_sizebc(p), i;
	size_t total = 0, len;

	if (strlen(lj_proto_chunkname(p, &len)) > len)
		abort();
	for (i = 0; i < n && i < 2000; i++) {
		const char *name;

		lj_proto_line(p, i);
		if (lj_proto_callname(p, i, &name))
			total += strlen(name);
	}
	lj_proto_line(p, n);
	lj_proto_line(p, UINT32_MAX);
	lj_proto_definitions(p, on_definition, &total);
	total += lj_proto_hash(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lj_ffnames *names = NULL;
	struct lj_proto *p = NULL;
	struct mem_image img;
	unsigned reads = 0, i;
	uint32_t where[2];

	if (size <= sizeof(where))
		return 0;
	memcpy(where, data, sizeof(where));
	mem_image_init(&img);
	if (!mem_image_add(&img, BASE, data + sizeof(where), size - sizeof(where))) {
		struct counted mem = {.mem.read = counted_read, .under = &img.mem, .reads = &reads};

		if (!lj_proto_read(&mem.mem, &layout, BASE + where[0], &p))
			ask(p);
		if (!lj_ffnames_read(&mem.mem, &layout, BASE + where[1], &names))
			for (i = 0; i < 256; i++)
				lj_ffname(names, (uint8_t)i);
	}
	lj_proto_free(&p);
	lj_ffnames_free(&names);
	mem_image_clear(&img);
	return 0;
}

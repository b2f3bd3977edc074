// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target's memory out of the fuzzer: prototypes and library tables of PUC Lua. Input: which
 * layout, two offsets (of a prototype and of a global_State), then the memory, which lies at a
 * fixed address.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem_image.h"
#include "fuzz_sym.h"
#include "lua/puc/cnames.h"
#include "lua/puc/proto.h"
#include "detect/puc/recognise.h"

struct input {
	uint32_t row, proto, g;
};

static void ask(const struct puc_proto *p)
{
	uint32_t n = puc_proto_sizecode(p), i;
	size_t total = 0, len;

	if (strlen(puc_proto_chunkname(p, &len)) > len)
		abort();
	/* each looks through the instructions before it: of many, not all are asked about */
	for (i = 0; i < n && i < 2000; i += i < 100 ? 1 : 16) {
		const char *name;
		enum puc_namewhat what = puc_proto_callname(p, i, &name);

		if (puc_proto_line(p, i) < -1)
			abort();
		if (what)
			total += strlen(name) + strlen(puc_namewhat_str(what));
	}
	puc_proto_line(p, n);
	puc_proto_line(p, UINT32_MAX);
	puc_proto_definitions(p, on_definition, &total);
	total += puc_proto_hash(p);
}

static const struct puc_layout *layout(uint32_t i)
{
	const char *name;
	size_t n;

	for (n = 0; puc_layout_row(n, &name); n++)
		;
	return puc_layout_row(i % n, &name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct puc_cnames *names = NULL;
	struct puc_proto *p = NULL;
	struct mem_image img;
	unsigned reads = 0;
	struct input in;

	if (size <= sizeof(in))
		return 0;
	memcpy(&in, data, sizeof(in));
	mem_image_init(&img);
	if (!mem_image_add(&img, BASE, data + sizeof(in), size - sizeof(in))) {
		struct counted mem = {.mem.read = counted_read, .under = &img.mem, .reads = &reads};
		const struct puc_layout *puc = layout(in.row);

		if (!puc_proto_read(&mem.mem, puc, BASE + in.proto, &p))
			ask(p);
		if (!puc_cnames_read(&mem.mem, puc, BASE + in.g, &names))
			puc_cname(names, BASE);
	}
	puc_proto_free(&p);
	puc_cnames_free(&names);
	mem_image_clear(&img);
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the file of a Lua state: two headers, of which the second one is read later, and what
 * the areas begin with. Numbers within their bounds are made small, as each record is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define AREA 2048 /* bytes of each area that the input fills */

static void use_text(const struct hook_state *st, struct hook_bytes bytes)
{
	volatile char last;
	size_t len;
	const char *text = hook_state_bytes(st, bytes, &len);

	if (len)
		last = text[len - 1];
	(void)last;
}

static int use_events(void *arg, struct hook_state *st, const struct hook_event *events, size_t n)
{
	uint64_t *seen = arg;

	for (size_t i = 0; i < n; i++) {
		const struct hook_func *func = hook_state_func(st, events[i].func);

		if (func)
			use_text(st, func->name);
	}
	*seen += n;
	return 0;
}

static void write_at(int fd, const void *data, size_t size, uint64_t at)
{
	if (pwrite(fd, data, size, (off_t)at) != (ssize_t)size)
		abort();
}

static void write_header(int fd, const uint8_t **data, size_t *size)
{
	struct hook_header h = {};
	size_t n = *size < sizeof(h) ? *size : sizeof(h);

	memcpy(&h, *data, n);
	*data += n;
	*size -= n;
	if (!(h.magic & 1)) /* half of the inputs */
		h.magic = HOOK_MAGIC;
	if (h.nfuncs <= HOOK_FUNCS_MAX)
		h.nfuncs &= 0x3ff;
	if (h.nbytes <= HOOK_BYTES_MAX)
		h.nbytes &= 0x3ff;
	if (h.head <= HOOK_EVENTS)
		h.head &= 0x3ff;
	write_at(fd, &h, sizeof(h), 0);
}

static void fill(int fd, const uint8_t **data, size_t *size, uint64_t at)
{
	static uint8_t area[AREA];
	size_t n = *size < AREA ? *size : AREA;

	memset(area, 0, sizeof(area));
	memcpy(area, *data, n);
	*data += n;
	*size -= n;
	write_at(fd, area, sizeof(area), at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct hook_state *st = calloc(1, sizeof(*st));
	uint64_t budget = 1 << 20, seen = 0;
	const uint8_t *second;
	size_t rest;

	if (fd < 0) {
		fd = memfd_create("hook", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, HOOK_TRACE_SIZE))
			abort();
	}
	if (!st)
		return 0;
	write_header(fd, &data, &size);
	second = data;
	rest = size;
	fill(fd, &data, &size, HOOK_FUNCS_AT);
	fill(fd, &data, &size, HOOK_BYTES_AT);
	fill(fd, &data, &size, HOOK_EVENTS_AT);
	hook_state_read(st, fd, use_events, &seen, &budget);
	write_header(fd, &second, &rest);
	hook_state_read(st, fd, use_events, &seen, &budget);
	hook_state_read(st, fd, NULL, NULL, &budget);
	for (uint32_t id = 0; id < hook_state_nfuncs(st); id++) {
		use_text(st, hook_state_func(st, id)->name);
		use_text(st, hook_state_func(st, id)->source);
	}
	if (seen != st->tail)
		abort();
	hook_state_free(st);
	return 0;
}

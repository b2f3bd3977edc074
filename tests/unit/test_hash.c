// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keys that collide in uthash's own hash function, HASH_JEN, are computed: its state is three words
 * to which each 12 bytes are added before a mixing that can be undone, so that for any first 12
 * bytes the next 12 that lead to a given state are a subtraction.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/hash_index.h"
#include "out/tally.h"

TestSuite(hash);

Test(hash, is_siphash_1_3)
{
	/* of CPython 3.11, which hashes bytes with it, the key being 0 for PYTHONHASHSEED=0 */
	static const struct {
		const char *data;
		uint64_t hash;
	} known[] = {
		{"a", 0x407448d2b89b1813},
		{"luabpf", 0xe49a1211b83bad20},
		{"12345678", 0x3489982430560a87},
		{"a name of more than two words", 0x1ada0cf3fee4f525},
	};
	static const uint64_t key[2];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		cr_expect_eq(hash_sip(key, known[i].data, strlen(known[i].data)), known[i].hash,
			     "%s", known[i].data);
}

Test(hash, an_index_has_all_that_was_added)
{
	struct hash_index index = {};
	uint32_t id = 0;
	size_t at = 0;

	cr_expect_not(hash_index_next(&index, 0, &at, &id), "an empty one");
	for (uint32_t i = 0; i < 1000; i++) /* pairs of one hash, at the end of the table, too */
		cr_assert_eq(hash_index_add(&index, UINT32_MAX - i / 2, i), 0);
	for (uint32_t i = 0; i < 1000; i += 2) {
		uint32_t first = 0;

		at = UINT32_MAX - i / 2;
		cr_assert(hash_index_next(&index, UINT32_MAX - i / 2, &at, &first));
		cr_assert(hash_index_next(&index, UINT32_MAX - i / 2, &at, &id));
		cr_expect(first != id && first / 2 == i / 2 && id / 2 == i / 2);
		cr_expect_not(hash_index_next(&index, UINT32_MAX - i / 2, &at, &id));
	}
	hash_index_free(&index);
}

enum { NAMES = 4096, LENGTH = 24 };

static unsigned int jen(const char *name)
{
	unsigned int hash;

	HASH_JEN(name, LENGTH, hash);
	return hash;
}

/* The state after the first 12 bytes. */
static void jen_state(const char *name, unsigned int state[3])
{
	state[0] = state[1] = 0x9e3779b9;
	state[2] = 0xfeedbeef;
	for (size_t i = 0; i < 12; i++)
		state[i / 4] += (unsigned int)(unsigned char)name[i] << (i % 4 * 8);
	HASH_JEN_MIX(state[0], state[1], state[2]);
}

/* One that begins with these 12 bytes; false when a byte of it is 0. */
static bool collide(const char *head, char name[LENGTH + 1])
{
	unsigned int state[3];

	memset(name, 0, LENGTH + 1);
	memcpy(name, head, 12);
	jen_state(name, state);
	for (size_t i = 0; i < 12; i++)
		name[12 + i] = (char)((0x12345678 - state[i / 4]) >> (i % 4 * 8));
	return strlen(name) == LENGTH;
}

Test(hash, names_that_were_made_to_collide_do_not)
{
	struct tallies table = {0};
	unsigned int n = 0, run = 0, longest = 0, hash = 0;

	for (unsigned int i = 0; n < NAMES; i++) {
		char head[13], name[LENGTH + 1];

		snprintf(head, sizeof(head), "%012u", i);
		if (!collide(head, name))
			continue;
		if (!n++)
			hash = jen(name);
		cr_assert_eq(jen(name), hash, "the names must collide without a key");
		cr_assert_eq(tally_add(&table, name, NULL, 1), 0);
	}
	/* half of the slots are free: a run of 400 in use, by chance, once in 10^25 runs */
	for (size_t i = 0; i < table.index.nslots; i++) {
		run = table.index.slots[i].number ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	cr_expect_lt(longest, 400, "%u of %u names side by side", longest, n);
	tally_free(&table);
}

// SPDX-License-Identifier: BSD-2-Clause
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include "hash.h"

static uint64_t run_key[2];

/*
 * Before main(): nothing has been hashed with another key. Where a filter of system calls forbids
 * getrandom(), the kernel's 16 random bytes of this process serve, which others may have seen.
 */
__attribute__((constructor)) static void draw_key(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);

	if (getrandom(run_key, sizeof(run_key), 0) != sizeof(run_key) && given)
		memcpy(run_key, given, sizeof(run_key));
}

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

/* Inline, so that v[] is in registers: a large profile hashes a hundred megabytes. */
static inline __attribute__((always_inline)) void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static inline __attribute__((always_inline)) void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

uint64_t hash_sip(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	const unsigned char *p = data;
	uint64_t word, last = (uint64_t)len << 56;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word)); /* little-endian */
		sip_word(v, word);
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)p[i] << (8 * i);
	sip_word(v, last);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

unsigned int hash_bytes(const void *data, size_t len)
{
	return (unsigned int)hash_sip(run_key, data, len);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uthash with two changes. Include this instead of <uthash.h>.
 *
 * - The process does not end when memory runs out: an element that could not be added has
 *   hh.tbl == NULL afterwards.
 * - Keys are foreign bytes, so the hash function has a key of its own in each run: with uthash's
 *   own, names that collide can be computed, and each lookup would walk all of them.
 *
 * uthash keeps elements in the order in which they were added: no output depends on the hash.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-1-3 (Aumasson and Bernstein: SipHash, a fast short-input PRF). */
uint64_t hash_sip(const uint64_t key[2], const void *data, size_t len);

/* The same with this run's key, its low 32 bits. */
unsigned int hash_bytes(const void *data, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes(key, len))
#include <uthash.h>

#endif

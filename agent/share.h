/* SPDX-License-Identifier: BSD-2-Clause */
/* A state's file (user/hook/abi.h): made, written, and made anew in a forked child. */
#ifndef AGENT_SHARE_H
#define AGENT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/abi.h"

struct share {
	struct hook_header *head;
	struct hook_func *funcs;
	char *bytes;
	struct hook_event *events;
	size_t size;
	size_t funcs_ready, bytes_ready; /* bytes of these areas that are reserved */
	uint64_t written, read;		 /* events; read: as far as it was looked up */
	uint32_t process;		 /* of share_process, whose file it is */
};

/*
 * A number of this process: a forked child has another. The kernel clears it in the child
 * (MADV_WIPEONFORK), however it was forked. NULL: the kernel cannot, and there is no module.
 */
extern volatile uint32_t *share_process;

static inline bool share_is_mine(const struct share *s)
{
	return s->process == *share_process;
}

/* The mode that the environment asks for; 0: none. */
uint32_t share_mode(void);

/* Creates the file. Returns false, with nothing changed, if it cannot be created. */
bool share_open(struct share *s, uint32_t mode, uint32_t vm);

/*
 * In a child that has just been forked: makes its own file, with the functions that the parent's
 * has and no calls. False: the share is closed.
 */
bool share_fork(struct share *s);

void share_close(struct share *s);

/* Adds the function; returns its ID, or 0: there is no room. */
uint32_t share_add(struct share *s, const struct hook_func *func);

/* Adds the bytes. {0, 0}: there is no room. */
struct hook_bytes share_put(struct share *s, const char *data, size_t len);

/*
 * Returns the next event to write, which share_commit() hands on. NULL: the ring is full and luabpf
 * has ended. While it lives, the program waits for it.
 */
struct hook_event *share_event(struct share *s);

static inline void share_commit(struct share *s)
{
	__atomic_store_n(&s->head->head, ++s->written, __ATOMIC_RELEASE);
}

uint64_t share_now(void);

/* Writes that the program has not run since then, but the module. */
void share_waited(struct share *s, uint64_t since);

#endif

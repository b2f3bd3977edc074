// SPDX-License-Identifier: BSD-2-Clause
/*
 * The recordings of a process share the child of base/reader.h, the descriptor of base/pager.h, and
 * libbpf's function for messages.
 */
#include <pthread.h>

#include <bpf/libbpf.h>

#include "base/pager.h"
#include "base/reader.h"
#include "recording.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static libbpf_print_fn_t of_host;
static unsigned recordings;

void shared_enter(void)
{
	pthread_mutex_lock(&lock);
	of_host = libbpf_set_print(NULL);
}

void shared_leave(void)
{
	libbpf_set_print(of_host);
	pthread_mutex_unlock(&lock);
}

void shared_hold(void)
{
	recordings++;
}

void shared_drop(void)
{
	if (--recordings)
		return;
	reader_close();
	pager_close();
}

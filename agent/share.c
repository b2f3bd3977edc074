// SPDX-License-Identifier: BSD-2-Clause
/*
 * A page is reserved before it is touched: on a full file system a fault would be a SIGBUS, which
 * kills the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "share.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define STEP 65536 /* bytes that are reserved at once */
#define NAMES_TRIED 65536
#define WAIT_NS 100000
#define WAITS_PER_LOOK 1000 /* for luabpf's end */

volatile uint32_t *share_process;
static uint32_t process_number; /* the last one that was given, here or in an ancestor */
static uint32_t states_made;
static char *directory; /* the program may change its environment */

static void number_process(void)
{
	uint32_t none = 0, number = process_number + 1;

	if (__atomic_compare_exchange_n(share_process, &none, number, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		process_number = number;
}

__attribute__((constructor)) static void on_load(void)
{
	const char *dir = getenv(HOOK_ENV_DIR);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!dir || page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
		return;
	directory = strdup(dir);
	share_process = page;
	number_process();
}

uint64_t share_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint32_t share_mode(void)
{
	const char *mode = getenv(HOOK_ENV_MODE);

	if (!mode || !directory || !share_process)
		return 0;
	return !strcmp(mode, "count") ? HOOK_COUNT : !strcmp(mode, "trace") ? HOOK_TRACE : 0;
}

/* Leaves errno for luabpf, unless another state has left one. */
static void note_failure(void)
{
	char path[4096], error[16];

	snprintf(path, sizeof(path), "%s/" HOOK_FAILED, directory);
	snprintf(error, sizeof(error), "%d", errno);
	if (symlink(error, path))
		return;
}

/* Returns a new file, or -1. */
static int make_file(char *path, size_t size, uint32_t *state)
{
	int fd = -1;

	for (int i = 0; i < NAMES_TRIED; i++) {
		*state = __atomic_fetch_add(&states_made, 1, __ATOMIC_RELAXED);
		snprintf(path, size, "%s/%d-%u", directory, (int)getpid(), *state);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST) /* before exec this process had others */
			break;
	}
	return fd;
}

static bool reserve(void *at, size_t len)
{
	return !madvise(at, len, MADV_POPULATE_WRITE);
}

/* Returns the file mapped, with its first pages reserved, or NULL with errno. */
static char *map_file(int fd, uint32_t mode, size_t size)
{
	char *at;

	if (ftruncate(fd, size))
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (reserve(at, HOOK_FUNCS_AT + STEP) && reserve(at + HOOK_BYTES_AT, STEP) &&
	    (mode != HOOK_TRACE || reserve(at + HOOK_EVENTS_AT, size - HOOK_EVENTS_AT)))
		return at;
	munmap(at, size);
	return NULL;
}

/* Returns a new file of this size, mapped, or NULL. Beyond RLIMIT_FSIZE there would be a SIGXFSZ. */
static char *open_file(uint32_t mode, size_t size, uint32_t *state)
{
	struct rlimit limit;
	char path[4096], *at;
	int fd;

	if (getrlimit(RLIMIT_FSIZE, &limit))
		return NULL;
	if (limit.rlim_cur < size) {
		errno = EFBIG;
		return NULL;
	}
	fd = make_file(path, sizeof(path), state);
	if (fd < 0)
		return NULL;
	at = map_file(fd, mode, size);
	if (!at) {
		int error = errno;

		unlink(path);
		errno = error;
	}
	close(fd);
	return at;
}

bool share_open(struct share *s, uint32_t mode, uint32_t vm)
{
	size_t size = mode == HOOK_TRACE ? HOOK_TRACE_SIZE : HOOK_COUNT_SIZE;
	uint32_t state;
	char *at = open_file(mode, size, &state);

	if (!at) {
		note_failure();
		return false;
	}
	*s = (struct share){
		.head = (struct hook_header *)at,
		.funcs = (struct hook_func *)(at + HOOK_FUNCS_AT),
		.bytes = at + HOOK_BYTES_AT,
		.events = (struct hook_event *)(at + HOOK_EVENTS_AT),
		.size = size,
		.funcs_ready = STEP,
		.bytes_ready = STEP,
		.process = *share_process,
	};
	s->head->mode = mode;
	s->head->pid = getpid();
	s->head->state = state;
	s->head->started = share_now();
	s->head->nfuncs = 1;
	s->head->vm = vm;
	__atomic_store_n(&s->head->magic, HOOK_MAGIC, __ATOMIC_RELEASE);
	return true;
}

void share_close(struct share *s)
{
	if (s->head)
		munmap(s->head, s->size);
	*s = (struct share){};
}

/* Reserves the area's first `need` bytes. */
static bool make_ready(char *area, size_t *ready, size_t need, size_t size)
{
	size_t upto = (need + STEP - 1) / STEP * STEP;

	if (need <= *ready)
		return true;
	if (upto > size || !reserve(area + *ready, upto - *ready))
		return false;
	*ready = upto;
	return true;
}

uint32_t share_add(struct share *s, const struct hook_func *func)
{
	uint32_t id = s->head->nfuncs;

	if (!make_ready((char *)s->funcs, &s->funcs_ready, (id + 1) * sizeof(*func),
			HOOK_FUNCS_MAX * sizeof(*func))) {
		s->head->flags |= HOOK_FULL;
		return 0;
	}
	s->funcs[id] = *func;
	__atomic_store_n(&s->head->nfuncs, id + 1, __ATOMIC_RELEASE);
	return id;
}

struct hook_bytes share_put(struct share *s, const char *data, size_t len)
{
	uint32_t at = s->head->nbytes;

	if (!make_ready(s->bytes, &s->bytes_ready, at + len, HOOK_BYTES_MAX)) {
		s->head->flags |= HOOK_FULL;
		return (struct hook_bytes){};
	}
	memcpy(s->bytes + at, data, len);
	s->head->nbytes = at + len;
	return (struct hook_bytes){at, len};
}

static bool copy_functions(struct share *s, const struct share *from)
{
	uint32_t n = from->head->nfuncs;

	if (!make_ready(s->bytes, &s->bytes_ready, from->head->nbytes, HOOK_BYTES_MAX) ||
	    !make_ready((char *)s->funcs, &s->funcs_ready, n * sizeof(*s->funcs),
			HOOK_FUNCS_MAX * sizeof(*s->funcs)))
		return false;
	memcpy(s->bytes, from->bytes, from->head->nbytes);
	for (uint32_t i = 0; i < n; i++) {
		s->funcs[i] = from->funcs[i];
		s->funcs[i].calls = 0;
	}
	s->head->nbytes = from->head->nbytes;
	s->head->nfuncs = n;
	return true;
}

/*
 * The parent goes on writing into the old file meanwhile. It changes no record that the child knows
 * of but for its count and its name.
 */
bool share_fork(struct share *s)
{
	struct share parent = *s;
	bool ok;

	number_process();
	ok = share_open(s, parent.head->mode, parent.head->vm);
	if (ok) {
		s->head->flags = parent.head->flags | HOOK_FORKED;
		ok = copy_functions(s, &parent);
		if (!ok)
			share_close(s);
	} else {
		*s = (struct share){};
	}
	share_close(&parent);
	return ok;
}

/* The kernel releases luabpf's lock when it ends, however it ends. */
static bool reader_lives(void)
{
	char path[4096];
	bool lives;
	int fd;

	snprintf(path, sizeof(path), "%s/" HOOK_ALIVE, directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	lives = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return lives;
}

static bool is_full(struct share *s)
{
	if (s->written - s->read < HOOK_EVENTS)
		return false;
	s->read = __atomic_load_n(&s->head->tail, __ATOMIC_ACQUIRE);
	return s->written - s->read >= HOOK_EVENTS;
}

static void put_waited(struct share *s, uint64_t now, uint64_t since)
{
	s->events[s->written % HOOK_EVENTS] = (struct hook_event){
		.time = now,
		.frame = now - since,
		.kind_and_line = HOOK_EV_WAITED << 24,
	};
	share_commit(s);
}

/* False: there is no reader. */
static bool wait_for_room(struct share *s)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};
	uint64_t since = share_now(), now;

	for (int i = 0; is_full(s); i++) {
		if (i % WAITS_PER_LOOK == 0 && !reader_lives()) {
			s->head->flags |= HOOK_READER_GONE;
			return false;
		}
		nanosleep(&pause, NULL);
	}
	now = share_now();
	s->head->waited += now - since;
	put_waited(s, now, since);
	return true;
}

struct hook_event *share_event(struct share *s)
{
	while (__builtin_expect(is_full(s), 0))
		if (!wait_for_room(s))
			return NULL;
	return &s->events[s->written % HOOK_EVENTS];
}

void share_waited(struct share *s, uint64_t since)
{
	if (share_event(s))
		put_waited(s, share_now(), since);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *     struct native_maps: the executable mappings of one process, as last read
 *         \-- struct native: device, inode, time -> open ELF file with its symbols
 *
 * Mappings are read again when an address lies in none of them: a library may have been loaded since.
 * An address of data is in none, ever, so this is done once for each address in REREAD_NS, and for
 * MOST_MISSED addresses of a process.
 *
 * A mapping's file is opened when the mapping is new, so that it has names after the process has
 * ended. At each reading after that only files of which a sample showed a function are asked
 * whether they were written to.
 */
#include "sym/native.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem_remote.h"
#include "proc/elf.h"
#include "proc/process.h"
#include "registered.h"

#define REREAD_NS 1000000000ULL
#define MOST_MISSED 16
#define MAX_MAPS 65536
#define MAX_FILES 1024		  /* mappings of files that are looked at, of one process */
#define MAX_OPEN 2048		  /* files, of all processes */
#define NAMES_WORK (4ULL << 30)	  /* of the functions of all files, in an hour */
#define NAMES_MOST (512ULL << 20) /* bytes that are kept of them; beyond, functions have no names */
#define IDLE_FILES 64		  /* kept open for the next process */
#define VDSO_SIZE 8192
#define VDSO_DEV UINT64_MAX /* of no device: the key of all vdsos, which are the kernel's */

struct native_file {
	struct process_file key;
	struct elf_file *elf;	       /* NULL: it is no ELF file, or is refused */
	uint64_t serial;	       /* an address may be another file's later */
	uint32_t users;		       /* mappings of processes that are known */
	uint64_t kept;		       /* bytes of its symbols; 0: they were not asked for */
	struct registered *registered; /* read before them, where they were asked for first */
	bool registered_read;
	char *name; /* without directories, as the first process has it that was seen */
	UT_hash_handle hh;
};

struct native_map {
	uint64_t start, end, offset;
	uint64_t dev, ino; /* 0, 0: of no file */
	struct native_file
		*file; /* NULL: it could not be opened, or there is none: code of a JIT */
	bool shown;    /* a sample had an address in it */
};

/* The addresses that were in no mapping, even when these had been read again. */
struct missed {
	uint64_t since_ns;
	uint32_t n;
	uint64_t addr[MOST_MISSED];
};

struct native_maps {
	struct native *native;
	struct missed missed;
	pid_t pid;
	struct native_map *maps; /* by address */
	size_t nmaps;		 /* 0: they were not read yet */
	uint64_t next_ns; /* before that they are not read again, see process_maps_pause_ns() */
	uint64_t id;	  /* of the mappings of files */
};

struct native {
	struct native_file *files; /* in the order in which they were opened */
	size_t idle;		   /* of them, without users */
	uint64_t serial;
	struct budget work;
	uint64_t filled_ns; /* when work was refilled */
	uint64_t kept;	    /* bytes, of all files */
};

int native_new(struct native **out)
{
	struct native *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->work = (struct budget){.remaining = NAMES_WORK, .of_what = "the names of functions"};
	n->filled_ns = clock_ns(CLOCK_MONOTONIC);
	*out = n;
	return 0;
}

static void drop_file(struct native *n, struct native_file *f)
{
	HASH_DEL(n->files, f);
	n->kept -= f->kept;
	elf_close(&f->elf);
	registered_free(&f->registered);
	free(f->name);
	free(f);
}

static void hold(struct native *n, struct native_file *f)
{
	if (f && !f->users++)
		n->idle--;
}

/* Programs come and go without end; their files must not stay open. */
static void release(struct native *n, struct native_file *f)
{
	struct native_file *oldest;

	if (!f || --f->users || ++n->idle <= IDLE_FILES)
		return;
	for (oldest = n->files; oldest->users;)
		oldest = oldest->hh.next;
	drop_file(n, oldest);
	n->idle--;
}

static void forget_maps(struct native_maps *m)
{
	for (size_t i = 0; i < m->nmaps; i++)
		release(m->native, m->maps[i].file);
	free(m->maps);
	m->maps = NULL;
	m->nmaps = 0;
}

int native_maps_new(struct native *n, pid_t pid, struct native_maps **out)
{
	struct native_maps *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->native = n;
	m->pid = pid;
	*out = m;
	return 0;
}

void native_maps_free(struct native_maps **m)
{
	if (!*m)
		return;
	forget_maps(*m);
	free(*m);
	*m = NULL;
}

void native_free(struct native **n)
{
	struct native_file *f, *next_file;

	if (!*n)
		return;
	HASH_ITER (hh, (*n)->files, f, next_file)
		drop_file(*n, f);
	free(*n);
	*n = NULL;
}

size_t native_files(const struct native *n, uint64_t *bytes)
{
	*bytes = n->kept;
	return HASH_COUNT(n->files);
}

static struct native_file *find_file(struct native *n, const struct process_file *key)
{
	struct native_file *f;

	HASH_FIND(hh, n->files, key, sizeof(*key), f);
	return f;
}

/* The part behind the last slash. A file that was replaced has the name that it had. */
static char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return strndup(name, process_path_len(name, strlen(name)));
}

/* Owns *elf from here on. */
static struct native_file *add_file(struct native *n, const struct process_file *key,
				    const char *path, struct elf_file **elf)
{
	struct native_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->name = base_name(path);
	if (!f->name) {
		free(f);
		return NULL;
	}
	f->key = *key;
	HASH_ADD(hh, n->files, key, sizeof(f->key), f);
	if (!f->hh.tbl) {
		free(f->name);
		free(f);
		return NULL;
	}
	f->elf = TAKE_PTR(*elf);
	f->serial = ++n->serial;
	n->idle++;
	return f;
}

struct reading {
	struct native_maps *p;
	const struct native_maps *before; /* as they were read before */
	size_t at;    /* the first mapping that does not lie below the one at hand */
	size_t files; /* mappings of some */
};

/* A JIT has many mappings side by side, and adds to them all the time. */
static bool continues(const struct native_maps *p, const struct process_mapping *m)
{
	return !m->ino && p->nmaps && !p->maps[p->nmaps - 1].file &&
	       p->maps[p->nmaps - 1].end == m->start;
}

/* The same mapping when it was read before; NULL: there was none. */
static const struct native_map *map_before(struct reading *r, const struct process_mapping *m)
{
	const struct native_map *map;

	while (r->at < r->before->nmaps && r->before->maps[r->at].start < m->start)
		r->at++;
	if (r->at == r->before->nmaps)
		return NULL;
	map = &r->before->maps[r->at];
	return map->start == m->start && map->end == m->end && map->offset == m->offset &&
			       map->dev == m->dev && map->ino == m->ino
		       ? map
		       : NULL;
}

static int add_map(struct reading *r, const struct process_mapping *m, struct native_file *file,
		   bool shown)
{
	struct native_maps *p = r->p;

	if (!file && continues(p, m)) {
		p->maps[p->nmaps - 1].end = m->end;
		return 0;
	}
	if (p->nmaps >= MAX_MAPS)
		return 0;
	if (array_grow(&p->maps, p->nmaps, sizeof(*p->maps)))
		return -ENOMEM;
	p->maps[p->nmaps++] = (struct native_map){.start = m->start,
						  .end = m->end,
						  .offset = m->offset,
						  .dev = m->dev,
						  .ino = m->ino,
						  .file = file,
						  .shown = shown};
	hold(p->native, file);
	return 0;
}

/* NULL: it cannot be opened now, which says nothing of later. */
static int find_or_open(struct native *n, pid_t pid, const struct process_mapping *m,
			struct native_file **file)
{
	struct elf_file *elf __cleanup(elf_close) = NULL;
	struct process_file key;
	int fd __close = -1;
	int r;

	*file = NULL;
	if (process_file(pid, m, &key))
		return 0;
	*file = find_file(n, &key);
	if (*file || HASH_COUNT(n->files) >= MAX_OPEN)
		return 0;
	fd = process_open_mapping(pid, m);
	if (fd < 0)
		return 0;
	r = elf_open_fd(fd, &elf);
	if (r && r != -ENOEXEC && !elf_refused(r))
		return r == -ENOMEM ? r : 0;
	budget_refill(&n->work, NAMES_WORK, &n->filled_ns);
	if (elf)
		elf_charge(elf, &n->work);
	*file = add_file(n, &key, m->path, &elf);
	return *file ? 0 : -ENOMEM;
}

/* The kernel's vdso is an ELF file in memory only. */
static int find_or_read_vdso(struct native *n, pid_t pid, const struct process_mapping *m,
			     struct native_file **file)
{
	const struct process_file key = {.dev = VDSO_DEV};
	struct elf_file *elf __cleanup(elf_close) = NULL;
	uint64_t size = m->end - m->start;
	unsigned char bytes[VDSO_SIZE];
	struct mem_remote mem;

	*file = find_file(n, &key);
	if (*file)
		return 0;
	if (size > VDSO_SIZE)
		size = VDSO_SIZE;
	mem_remote_init(&mem, pid);
	if (mem_read(&mem.mem, bytes, (uint32_t)size, m->start) ||
	    elf_open_bytes(bytes, size, &elf))
		return 0;
	*file = add_file(n, &key, m->path, &elf);
	return *file ? 0 : -ENOMEM;
}

static void add_to_id(struct native_maps *p, const struct process_mapping *m,
		      const struct native_file *file)
{
	uint64_t h = p->id;

	h = (h ^ m->start ^ m->end << 1 ^ m->offset << 2) * 0x9e3779b97f4a7c15ULL;
	p->id = (h ^ h >> 29 ^ (file ? file->serial : 0)) * 0x9e3779b97f4a7c15ULL;
}

static int note_mapping(void *arg, const struct process_mapping *m)
{
	struct reading *r = arg;
	const struct native_map *before = m->ino ? map_before(r, m) : NULL;
	bool shown = before && before->shown;
	struct native_file *file = NULL;
	int err = 0;

	if (m->ino)
		r->files++;
	if (before && before->file && !shown)
		file = before->file;
	else if (m->ino && r->files <= MAX_FILES) /* beyond, functions have no names */
		err = find_or_open(r->p->native, r->p->pid, m, &file);
	else if (!m->ino && !strcmp(m->path, "[vdso]"))
		err = find_or_read_vdso(r->p->native, r->p->pid, m, &file);
	if (err)
		return err;
	if (!file && before) /* it cannot be looked at now: the process is ending, perhaps */
		file = before->file;
	if (m->ino)
		add_to_id(r->p, m, file);
	return add_map(r, m, file, shown);
}

/* Reads the mappings anew. The old ones stay when that fails, or is too soon. */
int native_learn(struct native_maps *m)
{
	struct native_maps fresh = {.native = m->native, .pid = m->pid};
	struct reading r = {.p = &fresh, .before = m};
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t n = PROCESS_MAPPINGS;
	int err;

	if (m->nmaps && now < m->next_ns)
		return 0;
	err = process_code(m->pid, note_mapping, &r, &n);
	fresh.next_ns = m->next_ns = now + process_maps_pause_ns(n);
	if (err) {
		forget_maps(&fresh);
		return err;
	}
	fresh.missed = m->missed;
	forget_maps(m);
	*m = fresh;
	return 0;
}

int native_fork(struct native_maps *m, const struct native_maps *parent)
{
	if (m->nmaps || !parent->nmaps)
		return m->nmaps ? 0 : -ESRCH;
	m->maps = calloc(parent->nmaps, sizeof(*m->maps));
	if (!m->maps)
		return -ENOMEM;
	for (; m->nmaps < parent->nmaps; m->nmaps++) {
		m->maps[m->nmaps] = parent->maps[m->nmaps];
		hold(m->native, m->maps[m->nmaps].file);
	}
	m->id = parent->id;
	return 0;
}

uint64_t native_maps_id(const struct native_maps *m)
{
	return m->id;
}

static int beyond(const void *addr, const void *map)
{
	const struct native_map *m = map;
	uint64_t a = *(const uint64_t *)addr;

	return a < m->start ? -1 : a >= m->end;
}

static struct native_map *find_map(const struct native_maps *m, uint64_t addr)
{
	return m->nmaps ? bsearch(&addr, m->maps, m->nmaps, sizeof(*m->maps), beyond) : NULL;
}

/* May the mappings be read again for this address? Notes that they were. */
static bool may_look_again(struct missed *m, uint64_t addr)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t i;

	if (now - m->since_ns >= REREAD_NS) {
		m->since_ns = now;
		m->n = 0;
	}
	for (i = 0; i < m->n; i++)
		if (m->addr[i] == addr)
			return false;
	if (m->n == MOST_MISSED)
		return false;
	m->addr[m->n++] = addr;
	return true;
}

static int locate(struct native_maps *m, uint64_t addr, struct native_map **map)
{
	int err;

	*map = find_map(m, addr);
	if (*map || (m->nmaps && !may_look_again(&m->missed, addr)))
		return 0;
	err = native_learn(m);
	if (err)
		return m->nmaps && err != -ENOMEM ? 0 : err;
	*map = find_map(m, addr);
	return 0;
}

bool native_is_code(struct native_maps *m, uint64_t addr)
{
	struct native_map *map;

	return locate(m, addr, &map) || map;
}

/* -ENOENT: there is no room for them. */
static int keep_symbols(struct native *n, struct native_file *f)
{
	int err;

	if (f->kept)
		return 0;
	if (n->kept >= NAMES_MOST)
		return -ENOENT;
	err = elf_keep_symbols(f->elf); /* its descriptor is of no more use */
	if (err)
		return err;
	f->kept = elf_kept_bytes(f->elf) + registered_bytes(f->registered);
	n->kept += f->kept;
	return 0;
}

/* Sets the address that addr has in the file of map, which is an ELF file. */
static int address_in(const struct native_map *map, uint64_t addr, uint64_t *out)
{
	uint64_t bias;

	if (!map->file->elf || elf_bias(map->file->elf, map->start, map->offset, &bias))
		return -ENOENT;
	*out = addr - bias;
	return 0;
}

/* Finds the file that addr lies in. -errno as of native_symbol(). */
static int file_of(struct native_maps *m, uint64_t addr, struct native_file **file, uint64_t *vaddr)
{
	struct native_map *map;
	int err;

	err = locate(m, addr, &map);
	if (err)
		return err;
	if (map)
		map->shown = true;
	if (!map || !map->file || address_in(map, addr, vaddr))
		return -ENOENT;
	*file = map->file;
	return 0;
}

int native_symbol(struct native_maps *m, uint64_t addr, const char **name)
{
	struct native_file *file;
	uint64_t vaddr;
	int err = file_of(m, addr, &file, &vaddr);

	if (!err)
		err = keep_symbols(m->native, file);
	return err ? err : elf_symbol(file->elf, vaddr, name, NULL);
}

int native_registered(struct native_maps *m, uint64_t addr, const char **name)
{
	struct native_file *file;
	uint64_t vaddr;
	int err = file_of(m, addr, &file, &vaddr);

	if (!err && !file->kept && !file->registered_read) {
		file->registered_read = true;
		if (registered_read(file->elf, &file->registered) == -ENOMEM)
			err = -ENOMEM;
	}
	if (!err)
		err = keep_symbols(m->native, file); /* its descriptor is of no more use */
	if (err)
		return err;
	*name = registered_name(file->registered, vaddr);
	return *name ? 0 : -ENOENT;
}

void native_offset(struct native_maps *m, uint64_t addr, const char **module, uint64_t *offset)
{
	struct native_map *map = NULL;

	*module = NATIVE_NO_MODULE;
	*offset = 0;
	if (locate(m, addr, &map) || !map || !map->file)
		return;
	map->shown = true;
	*module = map->file->name;
	if (address_in(map, addr, offset))
		*offset = addr - map->start + map->offset;
}

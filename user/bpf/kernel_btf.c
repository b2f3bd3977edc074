// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "kernel_btf.h"

#define DEPTH 16 /* of structures without a name in each other */

/*
 * BTF in place: btf__new() copies it, and a page fault for each page of the copy takes more time than
 * all the rest.
 */
struct raw {
	const char *types, *strings;
	uint32_t types_size, strings_size;
	uint32_t *at; /* offset of each type */
	uint32_t n;   /* of types, which are numbered from 1 on */
};

struct pick {
	struct raw from;
	struct btf *out;
	const char *const *names;
	size_t n;
};

/* Returns the type's size with what follows it; 0: this kind is unknown. */
static uint32_t type_size(const struct btf_type *t)
{
	static const struct {
		uint8_t known, once, each; /* bytes once, and for each of btf_vlen() */
	} kinds[] = {
		[BTF_KIND_INT] = {1, sizeof(uint32_t), 0},
		[BTF_KIND_PTR] = {1, 0, 0},
		[BTF_KIND_ARRAY] = {1, sizeof(struct btf_array), 0},
		[BTF_KIND_STRUCT] = {1, 0, sizeof(struct btf_member)},
		[BTF_KIND_UNION] = {1, 0, sizeof(struct btf_member)},
		[BTF_KIND_ENUM] = {1, 0, sizeof(struct btf_enum)},
		[BTF_KIND_FWD] = {1, 0, 0},
		[BTF_KIND_TYPEDEF] = {1, 0, 0},
		[BTF_KIND_VOLATILE] = {1, 0, 0},
		[BTF_KIND_CONST] = {1, 0, 0},
		[BTF_KIND_RESTRICT] = {1, 0, 0},
		[BTF_KIND_FUNC] = {1, 0, 0},
		[BTF_KIND_FUNC_PROTO] = {1, 0, sizeof(struct btf_param)},
		[BTF_KIND_VAR] = {1, sizeof(struct btf_var), 0},
		[BTF_KIND_DATASEC] = {1, 0, sizeof(struct btf_var_secinfo)},
		[BTF_KIND_FLOAT] = {1, 0, 0},
		[BTF_KIND_DECL_TAG] = {1, sizeof(struct btf_decl_tag), 0},
		[BTF_KIND_TYPE_TAG] = {1, 0, 0},
		[BTF_KIND_ENUM64] = {1, 0, sizeof(struct btf_enum64)},
	};
	uint16_t kind = btf_kind(t);

	if (kind >= sizeof(kinds) / sizeof(kinds[0]) || !kinds[kind].known)
		return 0;
	return (uint32_t)sizeof(*t) + kinds[kind].once + btf_vlen(t) * kinds[kind].each;
}

/* The caller frees r->at, on failure, too. */
static int raw_open(struct raw *r, const void *bytes, size_t size)
{
	const struct btf_header *head = bytes;
	uint32_t at, len;
	uint64_t end;

	*r = (struct raw){};
	if (size < sizeof(*head) || head->magic != BTF_MAGIC)
		return -EBADMSG;
	end = (uint64_t)head->hdr_len + head->type_off + head->type_len;
	if (end > size || (uint64_t)head->hdr_len + head->str_off + head->str_len > size ||
	    !head->str_len || (head->hdr_len | head->type_off) & 3)
		return -EBADMSG;
	r->types = (const char *)bytes + head->hdr_len + head->type_off;
	r->types_size = head->type_len;
	r->strings = (const char *)bytes + head->hdr_len + head->str_off;
	r->strings_size = head->str_len;
	if (r->strings[r->strings_size - 1])
		return -EBADMSG;
	r->at = malloc((r->types_size / sizeof(struct btf_type) + 1) * sizeof(*r->at));
	if (!r->at)
		return -ENOMEM;
	for (at = 0; at < r->types_size; at += len) {
		len = r->types_size - at < sizeof(struct btf_type)
			      ? 0
			      : type_size((const void *)(r->types + at));
		if (!len || len > r->types_size - at)
			return -EBADMSG;
		r->at[++r->n] = at;
	}
	return 0;
}

static const struct btf_type *type_of(const struct raw *r, uint32_t id)
{
	return id && id <= r->n ? (const void *)(r->types + r->at[id]) : NULL;
}

static const char *name_of(const struct pick *p, uint32_t at)
{
	return at < p->from.strings_size ? p->from.strings + at : "";
}

static bool is_wanted(const struct pick *p, const struct btf_type *t)
{
	const char *name = name_of(p, t->name_off);

	for (size_t i = 0; i < p->n; i++)
		if (*name == *p->names[i] && !strcmp(name, p->names[i]))
			return true;
	return false;
}

/* Returns the type without const, volatile, typedef. */
static const struct btf_type *strip(const struct raw *r, uint32_t id)
{
	const struct btf_type *t = type_of(r, id);
	int i;

	for (i = 0; i < DEPTH && t && (btf_is_mod(t) || btf_is_typedef(t)); i++)
		t = type_of(r, t->type);
	return t;
}

static int add_struct(struct pick *p, const struct btf_type *t, int depth);

/* Returns the number of a type like this one, 0 for one that is left out, or -errno. */
static int add_type(struct pick *p, uint32_t id, int depth)
{
	const struct btf_type *t = strip(&p->from, id);
	int r;

	if (!t)
		return 0;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(p->out, name_of(p, t->name_off), t->size, btf_int_encoding(t));
	case BTF_KIND_ENUM:
		return btf__add_enum(p->out, name_of(p, t->name_off), t->size);
	case BTF_KIND_PTR:
		return btf__add_ptr(p->out, 0);
	case BTF_KIND_ARRAY:
		r = depth < DEPTH ? add_type(p, btf_array(t)->type, depth + 1) : -EBADMSG;
		return r < 0 ? r : btf__add_array(p->out, r, r, btf_array(t)->nelems);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return t->name_off && !is_wanted(p, t) ? 0 : add_struct(p, t, depth);
	}
	return 0;
}

static int add_struct(struct pick *p, const struct btf_type *t, int depth)
{
	const char *name = name_of(p, t->name_off);
	const struct btf_member *m = btf_members(t);
	uint32_t i, n = btf_vlen(t);
	int *types __free = malloc((n + 1) * sizeof(*types));
	int id, r = 0;

	if (!types || depth == DEPTH)
		return types ? -EBADMSG : -ENOMEM;
	for (i = 0; i < n && r >= 0; i++)
		types[i] = r = add_type(p, m[i].type, depth + 1);
	if (r < 0)
		return r;
	id = btf_is_union(t) ? btf__add_union(p->out, name, t->size)
			     : btf__add_struct(p->out, name, t->size);
	for (i = 0, r = id < 0 ? id : 0; i < n && !r; i++)
		r = btf__add_field(p->out, name_of(p, m[i].name_off), types[i],
				   btf_member_bit_offset(t, i), btf_member_bitfield_size(t, i));
	return r ? r : id;
}

int kernel_btf_pick(const void *bytes, size_t size, const char *const *names, size_t n,
		    struct btf **out)
{
	struct pick p = {.out = btf__new_empty(), .names = names, .n = n};
	int r = p.out ? raw_open(&p.from, bytes, size) : -errno;

	for (uint32_t id = 1; id <= p.from.n && r >= 0; id++) {
		const struct btf_type *t = type_of(&p.from, id);

		if (btf_is_struct(t) && is_wanted(&p, t))
			r = add_struct(&p, t, 0);
	}
	free(p.from.at);
	if (r < 0)
		btf__free(p.out);
	else
		*out = p.out;
	return r < 0 ? r : 0;
}

/* kernel_btf_pick() where the kernel cannot map the file (before 6.16): read(2) of sysfs returns a
 * page at a time. */
static int pick_read(const char *const *names, size_t n, struct btf **out)
{
	struct btf *all = btf__parse(KERNEL_BTF, NULL);
	const void *bytes = NULL;
	uint32_t size = 0;
	int r = all ? 0 : -errno;

	if (!r)
		bytes = btf__raw_data(all, &size);
	if (!r)
		r = bytes ? kernel_btf_pick(bytes, size, names, n, out) : -ENOMEM;
	btf__free(all);
	return r;
}

static int pick_kernels(const char *const *names, size_t n, struct btf **out)
{
	int fd __close = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC), r;
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return pick_read(names, n, out);
	r = kernel_btf_pick(p, (size_t)st.st_size, names, n, out);
	munmap(p, (size_t)st.st_size);
	return r;
}

static int write_file(const struct btf *btf, int *out)
{
	int fd __close = memfd_create("luabpf-btf", MFD_CLOEXEC);
	const void *raw;
	uint32_t size;

	if (fd < 0)
		return -errno;
	raw = btf__raw_data(btf, &size);
	if (!raw)
		return -ENOMEM;
	if (write(fd, raw, size) != (ssize_t)size)
		return -EIO;
	*out = TAKE_FD(fd);
	return 0;
}

int kernel_btf_open(const char *const *names, size_t n, int *fd)
{
	struct btf *btf = NULL;
	int r = pick_kernels(names, n, &btf);

	if (!r)
		r = write_file(btf, fd);
	btf__free(btf);
	return r;
}

int kernel_btf_check(struct error *err)
{
	if (!access(KERNEL_BTF, R_OK))
		return 0;
	if (access("/sys/kernel", F_OK)) {
		error_set(err, -ENOENT, KERNEL_BTF ": /sys is not mounted");
		return error_remedy(err, -ENOENT,
				    "mount -t sysfs sysfs /sys; a container started with "
				    "--privileged has it");
	}
	error_set(err, -ENOENT, KERNEL_BTF ": this kernel offers no BTF");
	return error_remedy(err, -ENOENT, "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y");
}

void kernel_btf_use(struct bpf_object_open_opts *options, int fd, char path[KERNEL_BTF_PATH])
{
	snprintf(path, KERNEL_BTF_PATH, "/proc/self/fd/%d", fd);
	if (fd >= 0)
		options->btf_custom_path = path;
}

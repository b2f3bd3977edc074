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

struct pick {
	const struct btf *from;
	struct btf *out;
	const char *const *names;
	size_t n;
};

static const char *name_of(const struct pick *p, uint32_t at)
{
	const char *name = btf__name_by_offset(p->from, at);

	return name ? name : "";
}

static bool is_wanted(const struct pick *p, const struct btf_type *t)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(name_of(p, t->name_off), p->names[i]))
			return true;
	return false;
}

/* Returns the type without const, volatile, typedef. */
static const struct btf_type *strip(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	int i;

	for (i = 0; i < DEPTH && t && (btf_is_mod(t) || btf_is_typedef(t)); i++)
		t = btf__type_by_id(btf, t->type);
	return t;
}

static int add_struct(struct pick *p, const struct btf_type *t, int depth);

/* Returns the number of a type like this one, 0 for one that is left out, or -errno. */
static int add_type(struct pick *p, uint32_t id, int depth)
{
	const struct btf_type *t = strip(p->from, id);
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

int kernel_btf_pick(const struct btf *from, const char *const *names, size_t n, struct btf **out)
{
	struct pick p = {.from = from, .out = btf__new_empty(), .names = names, .n = n};
	uint32_t id, end = btf__type_cnt(from);
	int r = p.out ? 0 : -errno;

	for (id = 1; id < end && r >= 0; id++) {
		const struct btf_type *t = btf__type_by_id(from, id);

		if (btf_is_struct(t) && is_wanted(&p, t))
			r = add_struct(&p, t, 0);
	}
	if (r < 0)
		btf__free(p.out);
	else
		*out = p.out;
	return r < 0 ? r : 0;
}

/* Maps the file if the kernel can (Linux 6.16): read(2) of sysfs returns a page at a time. */
static struct btf *load_kernels(void)
{
	int fd __close = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	struct btf *btf = NULL;
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	if (st.st_size > UINT32_MAX) {
		errno = EFBIG;
		return NULL;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return btf__parse(KERNEL_BTF, NULL);
	btf = btf__new(p, (uint32_t)st.st_size);
	munmap(p, (size_t)st.st_size);
	return btf;
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
	struct btf *all = load_kernels(), *btf = NULL;
	int r = all ? kernel_btf_pick(all, names, n, &btf) : -errno;

	if (!r)
		r = write_file(btf, fd);
	btf__free(btf);
	btf__free(all);
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

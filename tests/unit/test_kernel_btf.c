/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/btf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/kernel_btf.h"

static const char *const wanted[] = {"task", "missing"};

/* struct other { int x; };
 * struct task { struct { const u32 *next; struct other *o; }; u32 a[3]; struct other b; int c : 3;
 * };
 */
static struct btf *example(void)
{
	struct btf *b = btf__new_empty();
	int i = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	int u = btf__add_typedef(b, "u32", btf__add_int(b, "unsigned int", 4, 0));
	int other = btf__add_struct(b, "other", 4), next, o, inner, a;

	btf__add_field(b, "x", i, 0, 0);
	next = btf__add_ptr(b, btf__add_const(b, u));
	o = btf__add_ptr(b, other);
	inner = btf__add_struct(b, NULL, 16);
	btf__add_field(b, "next", next, 0, 0);
	btf__add_field(b, "o", o, 64, 0);
	a = btf__add_array(b, i, u, 3);
	btf__add_struct(b, "task", 36);
	btf__add_field(b, NULL, inner, 0, 0);
	btf__add_field(b, "a", a, 128, 0);
	btf__add_field(b, "b", other, 224, 0);
	btf__add_field(b, "c", i, 256, 3);
	return b;
}

static int pick(const struct btf *from, const char *const *names, size_t n, struct btf **out)
{
	uint32_t size;
	const void *bytes = btf__raw_data(from, &size);

	return kernel_btf_pick(bytes, size, names, n, out);
}

Test(kernel_btf, picks_what_is_asked_for)
{
	struct btf *from = example(), *to = NULL;
	const struct btf_member *m;
	const struct btf_type *t;

	cr_assert_eq(pick(from, wanted, 2, &to), 0);
	cr_assert_lt(btf__find_by_name(to, "other"), 0);
	t = btf__type_by_id(to, (uint32_t)btf__find_by_name(to, "task"));
	cr_assert(t && btf_is_struct(t) && t->size == 36 && btf_vlen(t) == 4);
	m = btf_members(t);
	cr_assert_str_eq(btf__name_by_offset(to, m[1].name_off), "a");
	cr_assert_eq(btf_member_bit_offset(t, 1), 128);
	cr_assert_eq(btf__resolve_size(to, m[1].type), 12);
	cr_assert_eq(m[2].type, 0);
	cr_assert_eq(btf_member_bit_offset(t, 3), 256);
	cr_assert_eq(btf_member_bitfield_size(t, 3), 3);
	t = btf__type_by_id(to, m[0].type);
	cr_assert(btf_is_struct(t) && t->size == 16 && btf_vlen(t) == 2);
	cr_assert_str_eq(btf__name_by_offset(to, btf_members(t)[1].name_off), "o");
	cr_assert(btf_is_ptr(btf__type_by_id(to, btf_members(t)[1].type)));
	btf__free(to);
	btf__free(from);
}

/* A structure with a name is left out of another, but for one that is asked for, too. */
Test(kernel_btf, picks_what_is_in_another)
{
	static const char *const both[] = {"task", "other"};
	struct btf *from = example(), *to = NULL;
	const struct btf_type *t;

	cr_assert_eq(pick(from, both, 2, &to), 0);
	t = btf__type_by_id(to, (uint32_t)btf__find_by_name(to, "task"));
	t = btf__type_by_id(to, btf_members(t)[2].type);
	cr_assert(btf_is_struct(t) && t->size == 4 && btf_vlen(t) == 1);
	cr_assert_str_eq(btf__name_by_offset(to, btf_members(t)[0].name_off), "x");
	btf__free(to);
	btf__free(from);
}

Test(kernel_btf, nothing_is_there)
{
	struct btf *from = btf__new_empty(), *to = NULL;

	cr_assert_eq(pick(from, wanted, 2, &to), 0);
	cr_expect_eq(btf__type_cnt(to), 1);
	btf__free(to);
	btf__free(from);
}

/* Structures without a name, one in the other: they end somewhere. */
Test(kernel_btf, too_deep)
{
	struct btf *from = btf__new_empty(), *to = NULL;
	int inner = btf__add_int(from, "int", 4, 0), i;

	for (i = 0; i < 40; i++) {
		int outer = btf__add_struct(from, i < 39 ? NULL : "task", 4);

		btf__add_field(from, "x", inner, 0, 0);
		inner = outer;
	}
	cr_expect_eq(pick(from, wanted, 2, &to), -EBADMSG);
	cr_expect_null(to);
	btf__free(from);
}

/* Types of all kinds are skipped, in front of the one that is wanted. */
Test(kernel_btf, skips_the_others)
{
	struct btf *from = btf__new_empty(), *to = NULL;
	int i = btf__add_int(from, "int", 4, 0), f;

	btf__add_enum(from, "e", 4);
	btf__add_enum_value(from, "one", 1);
	btf__add_enum64(from, "e64", 8, false);
	btf__add_enum64_value(from, "two", 2);
	btf__add_fwd(from, "fwd", BTF_FWD_STRUCT);
	btf__add_volatile(from, i);
	btf__add_restrict(from, i);
	f = btf__add_func_proto(from, i);
	btf__add_func_param(from, "x", i);
	btf__add_func(from, "f", BTF_FUNC_STATIC, f);
	btf__add_var(from, "v", BTF_VAR_STATIC, i);
	btf__add_datasec(from, ".data", 4);
	btf__add_datasec_var_info(from, i, 0, 4);
	btf__add_float(from, "float", 4);
	btf__add_decl_tag(from, "tag", f, -1);
	btf__add_type_tag(from, "tag", i);
	btf__add_union(from, "u", 4);
	btf__add_field(from, "x", i, 0, 0);
	btf__add_struct(from, "task", 4);
	btf__add_field(from, "x", i, 0, 0);
	cr_assert_eq(pick(from, wanted, 2, &to), 0);
	cr_expect_gt(btf__find_by_name_kind(to, "task", BTF_KIND_STRUCT), 0);
	btf__free(to);
	btf__free(from);
}

/* Whatever a byte of it is: an answer, and no read outside. */
Test(kernel_btf, damaged)
{
	struct btf *from = example(), *to;
	uint32_t size, i;
	const void *bytes = btf__raw_data(from, &size);

	for (i = 0; i < size; i++) {
		uint8_t *copy = malloc(size);

		memcpy(copy, bytes, size);
		copy[i] ^= 0xff;
		to = NULL;
		if (!kernel_btf_pick(copy, size, wanted, 2, &to))
			btf__free(to);
		free(copy);
		copy = malloc(i + 1);
		memcpy(copy, bytes, i);
		cr_expect_eq(kernel_btf_pick(copy, i, wanted, 2, &to), -EBADMSG);
		free(copy);
	}
	btf__free(from);
}

Test(kernel_btf, of_this_kernel)
{
	static const char *const names[] = {"task_struct", "mm_struct"};
	char path[32];
	struct btf *b;
	int fd;

	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		cr_assert_lt(kernel_btf_open(names, 2, &fd), 0);
		return;
	}
	cr_assert_eq(kernel_btf_open(names, 2, &fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	b = btf__parse(path, NULL);
	cr_assert(b);
	cr_assert_gt(btf__find_by_name_kind(b, "task_struct", BTF_KIND_STRUCT), 0);
	cr_assert_gt(btf__find_by_name_kind(b, "mm_struct", BTF_KIND_STRUCT), 0);
	btf__free(b);
	close(fd);
}

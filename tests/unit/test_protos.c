/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of prototypes, when one takes the place of another that has its fingerprint.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/cleanup.h"
#include "puc_code.h"
#include "sym/protos.h"
#include "sym/puc_proto.h"

TestSuite(protos, .timeout = 20);

/* function one() end function two() end: names that the fingerprint does not reach */
static const struct puc_code_ins main_code[] = {
	{I_CLOSURE, 0, 0, 0}, {I_DATA, 0, 0, 0},   {I_DATA, 0, 0, 0}, {I_SETGLOBAL, 4, 0, 0},
	{I_CLOSURE, 0, 1, 0}, {I_DATA, 0, 0, 0},   {I_DATA, 0, 0, 0}, {I_SETGLOBAL, 5, 0, 0},
	{I_CALL, 1, 0, 0},    {I_RETURN, 0, 0, 0},
};
#define CALL_AT 8
static const char *const main_k[] = {"a", "b", "c", "d", "one", "two", NULL};

struct scene {
	struct arena *a;
	struct lb_build build;
	uint64_t child[2], between, parent;
	uint64_t one; /* its text */
};

static uint64_t find(const struct scene *s, const void *bytes, size_t n)
{
	const uint8_t *at = memmem(s->a->bytes, s->a->used, bytes, n);

	cr_assert_not_null(at);
	return ARENA_BASE + (uint64_t)(at - s->a->bytes);
}

static void scene_init(struct scene *s)
{
	static const struct puc_code_ins calls[] = {{I_CALL, 1, 0, 0}, {I_RETURN, 0, 0, 0}};
	const struct puc_layout *puc;
	const char *row;
	int i;

	memset(s, 0, sizeof(*s));
	puc = puc_layout_of("5.4.4", &row);
	s->a = arena_new(puc);
	s->build.family = LB_FAMILY_PUC;
	s->build.puc.puc = *puc;
	for (i = 0; i < 2; i++)
		s->child[i] = puc_code_proto(
			s->a,
			&(struct puc_code_source){.code = calls, .ncode = 2, .k = main_k + 6});
	s->between = puc_code_proto(
		s->a, &(struct puc_code_source){.code = calls, .ncode = 2, .k = main_k + 6});
	s->parent = puc_code_proto(s->a, &(struct puc_code_source){
						 .code = main_code,
						 .ncode = LENGTH(main_code),
						 .k = main_k,
						 .children = s->child,
						 .nchildren = 2,
					 });
	arena_take(s->a, 64);
	s->one = find(s, "one", 4);
}

static uint32_t print_of(const struct scene *s, uint64_t addr)
{
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;

	cr_assert_eq(puc_proto_read(arena_mem(s->a), s->a->puc, addr, &p), 0);
	return puc_proto_fingerprint(p);
}

static void on_change(void *arg, uint64_t addr)
{
	(void)addr;
	++*(unsigned *)arg;
}

/* Whoever has not been shown a prototype has made nothing of it: to tell him is a search in vain,
 * and there are as many as there are functions. */
Test(protos, changed_is_what_was_shown)
{
	struct protos *p __cleanup(protos_free) = NULL;
	const struct protos_entry *entry;
	struct lb_rec_proto rec = {0};
	unsigned changes = 0;
	struct scene s;
	uint32_t print;

	scene_init(&s);
	print = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	cr_assert_not_null(protos_get(p, &s.build, s.child[0], print_of(&s, s.child[0]), 1));
	rec.proto = s.parent;
	rec.print = print;
	cr_assert_eq(protos_ship(p, &rec, &s.build), 0);
	entry = protos_get(p, &s.build, s.parent, print, 1);
	cr_assert_not_null(entry);
	cr_assert_str_eq(protos_definition(entry, s.child[0]), "one");
	cr_expect_eq(changes, 0);

	arena_put(s.a, s.one, "uno", 3);
	cr_assert_eq(print_of(&s, s.parent), print);
	entry = protos_get(p, &s.build, s.parent, print, 2);
	cr_expect_eq(changes, 1);
	cr_expect(entry->doubtful);
	entry = protos_get(p, &s.build, s.parent, print, 3);
	cr_expect_not(entry->doubtful);
	cr_expect_eq(changes, 1);
	cr_expect_str_eq(protos_definition(entry, s.child[0]), "uno");
	arena_free(&s.a);
}

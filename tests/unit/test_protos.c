/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of prototypes, when one takes the place of another that has its fingerprint. The
 * target is this process: an arena at its own addresses.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "prof/prof.h"
#include "puc_code.h"
#include "sym/protos.h"
#include "sym/puc_proto.h"
#include "sym/symbolizer.h"

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
	uint64_t children;
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
	s->children = find(s, s->child, sizeof(s->child));
}

static uint32_t print_of(const struct scene *s, uint64_t addr)
{
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;

	cr_assert_eq(puc_proto_read(arena_mem(s->a), s->a->puc, addr, &p), 0);
	return puc_proto_fingerprint(p);
}

static void on_change(void *arg)
{
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
	cr_assert_eq(protos_ship(p, &rec, &s.build, 1), 0);
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

/* Memory that may be unmapped. */
struct mapping {
	struct lb_mem mem;
	const struct lb_mem *under;
	bool gone;
};

static int read_mapping(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mapping *m = (const struct mapping *)mem;

	return m->gone ? -EFAULT : mem_read(m->under, dst, size, addr);
}

/* An address that has another prototype than before, or what may be any's: until then BPF may trust
 * it, and so it is in doubt. */
Test(protos, trust_is_for_addresses_that_are_not_used_again)
{
	enum { KEPT, ANOTHER, GONE, SAME_PRINT, UNMAPPED, CASES };
	int i;

	for (i = 0; i < 2 * CASES; i++) {
		struct protos *p __cleanup(protos_free) = NULL;
		const struct protos_entry *entry;
		bool trusted = i >= CASES;
		struct mapping map = {.mem.read = read_mapping};
		unsigned changes = 0;
		struct scene s;
		uint32_t print;

		scene_init(&s);
		print = print_of(&s, s.parent);
		map.under = arena_mem(s.a);
		cr_assert_eq(protos_new(&map.mem, on_change, &changes, &p), 0);
		cr_assert_not_null(protos_get(p, &s.build, s.parent, print, 1));
		if (trusted)
			protos_trust(p, 1);
		cr_expect_not(protos_reused(p));
		switch (i % CASES) {
		case ANOTHER:
			arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
			break;
		case GONE:
			arena_put(s.a, s.parent + PUC_GC_TT, "", 1);
			break;
		case SAME_PRINT:
			arena_put(s.a, s.one, "uno", 3);
			break;
		case UNMAPPED:
			map.gone = true;
			break;
		}
		arena_mem(s.a);
		entry = protos_get(p, &s.build, s.parent, print, 2);
		cr_assert_not_null(entry);
		cr_expect_eq(entry->doubtful,
			     i % CASES == SAME_PRINT || (trusted && i % CASES == ANOTHER),
			     "case %d", i);
		cr_expect_eq(protos_reused(p),
			     i % CASES == ANOTHER || i % CASES == SAME_PRINT ||
				     (trusted && i % CASES == GONE),
			     "case %d", i);
		/* long after BPF has stopped to trust */
		entry = protos_get(p, &s.build, s.parent, print, 9);
		cr_expect_not(entry->doubtful, "case %d", i);
		arena_free(&s.a);
	}
}

/* Two fingerprints at one address are two prototypes. */
Test(protos, reused_by_fingerprint)
{
	struct protos *p __cleanup(protos_free) = NULL;
	unsigned changes = 0;
	struct scene s;
	uint32_t print;

	scene_init(&s);
	print = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	protos_get(p, &s.build, s.parent, print, 1);
	protos_get(p, &s.build, s.between, print_of(&s, s.between), 1);
	protos_get(p, &s.build, s.parent, print, 2);
	cr_expect_not(protos_reused(p));
	arena_put(s.a, s.parent + PUC_GC_TT, "", 1); /* there is nothing any more */
	arena_mem(s.a);
	protos_get(p, &s.build, s.parent, print, 3);
	cr_expect_not(protos_reused(p));
	protos_get(p, &s.build, s.parent, print + 1, 3);
	cr_expect(protos_reused(p));
	protos_clear(p);
	cr_expect(protos_reused(p), "what is forgotten has been so");
	arena_free(&s.a);
}

/* One whose code lies where another's was, at an address of its own: pc may be in both. */
Test(protos, reused_by_code)
{
	const int64_t moved[] = {-4, 0, 4, 4 * (int64_t)LENGTH(main_code), -8};
	size_t i;

	for (i = 0; i < LENGTH(moved); i++) {
		struct protos *p __cleanup(protos_free) = NULL;
		unsigned changes = 0;
		struct scene s;
		uint64_t code;

		scene_init(&s);
		cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
		protos_get(p, &s.build, s.parent, print_of(&s, s.parent), 1);
		code = arena_get64(s.a, s.parent + s.a->puc->p_code);
		arena_put64(s.a, s.between + s.a->puc->p_code, code + (uint64_t)moved[i]);
		arena_mem(s.a);
		protos_get(p, &s.build, s.between, print_of(&s, s.between), 1);
		cr_expect_eq(protos_reused(p), i < 3, "%zu", i); /* it has two instructions */
		arena_free(&s.a);
	}
}

/*
 * What BPF ships while it may trust what was there before: samples of both are in doubt, and
 * whoever has seen the first is told. But not when the first was seen for the last time long ago.
 */
Test(protos, reused_while_trusted)
{
	static const struct {
		uint32_t trusted; /* round, 0: none */
		uint32_t shipped; /* round; the first was shown in round 2 */
		bool doubtful;
	} cases[] = {{0, 2, false}, {1, 2, true}, {2, 4, true}, {4, 5, false}, {50, 50, false}};
	size_t i;

	for (i = 0; i < LENGTH(cases); i++) {
		uint32_t round = cases[i].shipped, was, is;
		struct protos *p __cleanup(protos_free) = NULL;
		struct lb_rec_proto rec = {0};
		unsigned changes = 0;
		struct scene s;

		scene_init(&s);
		was = print_of(&s, s.parent);
		cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
		protos_get(p, &s.build, s.parent, was, 2);
		if (cases[i].trusted)
			protos_trust(p, cases[i].trusted);
		arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
		arena_mem(s.a);
		is = print_of(&s, s.parent);
		rec.proto = s.parent;
		rec.print = is;
		cr_assert_eq(protos_ship(p, &rec, &s.build, round), 0);
		cr_expect(protos_reused(p));
		cr_expect_eq(changes, cases[i].doubtful, "%zu", i);
		cr_expect_eq(protos_get(p, &s.build, s.parent, is, round)->doubtful,
			     cases[i].doubtful, "%zu", i);
		/* it is not there any more */
		cr_expect_eq(protos_get(p, &s.build, s.parent, was, round)->doubtful,
			     cases[i].trusted != 0, "%zu", i);
		cr_expect_not(protos_get(p, &s.build, s.parent, is, round + 7)->doubtful);
		arena_free(&s.a);
	}
}

/* What was counted may be read in a later round than what showed that it is in doubt. */
Test(protos, doubt_lasts_until_all_is_read)
{
	struct protos *p __cleanup(protos_free) = NULL;
	struct lb_rec_proto rec = {0};
	unsigned changes = 0;
	uint32_t was, round;
	struct scene s;
	uint8_t line;

	scene_init(&s);
	was = print_of(&s, s.parent);
	line = *(uint8_t *)arena_at(s.a, s.parent + s.a->puc->p_linedefined, 1);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	protos_get(p, &s.build, s.parent, was, 1);
	protos_trust(p, 1);
	protos_left(p, 1);
	arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
	arena_mem(s.a);
	rec.proto = s.parent;
	rec.print = print_of(&s, s.parent);
	cr_assert_eq(protos_ship(p, &rec, &s.build, 2), 0);
	arena_put(s.a, s.parent + s.a->puc->p_linedefined, &line, 1); /* the first is back */
	arena_mem(s.a);
	cr_assert_eq(print_of(&s, s.parent), was);
	for (round = 2; round < 9; round++) {
		cr_expect(protos_get(p, &s.build, s.parent, was, round)->doubtful, "%u", round);
		protos_left(p, round);
	}
	cr_expect(protos_get(p, &s.build, s.parent, was, 9)->doubtful);
	cr_expect_not(protos_get(p, &s.build, s.parent, was, 10)->doubtful);
	arena_free(&s.a);
}

/* As long as not all is read that was sent while BPF trusted, it counts as trusted. */
Test(protos, trust_lasts_until_all_is_read)
{
	struct protos *p __cleanup(protos_free) = NULL;
	unsigned changes = 0;
	struct scene s;
	uint32_t print, round;

	scene_init(&s);
	print = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	protos_get(p, &s.build, s.parent, print, 1);
	protos_left(p, 1); /* it was not trusted */
	protos_trust(p, 1);
	for (round = 2; round < 9; round++)
		protos_left(p, round);
	arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
	arena_mem(s.a);
	cr_expect(protos_get(p, &s.build, s.parent, print, 9)->doubtful);
	arena_free(&s.a);
}

static void put_line(const struct scene *s, uint64_t proto, uint32_t line)
{
	arena_put32(s->a, proto + s->a->puc->p_linedefined, line);
}

static const char *misfit_with(struct protos *p, const struct scene *s, uint64_t proto,
			       uint32_t round)
{
	cr_assert_not_null(protos_get(p, &s->build, proto, print_of(s, proto), round));
	return protos_misfit(p, &s->build);
}

/* Where most prototypes are none, the layout is another; where few are, it is theirs. */
Test(protos, most_tell_the_layout)
{
	struct protos *p __cleanup(protos_free) = NULL;
	struct lb_build other = {0};
	unsigned changes = 0;
	struct scene s;
	uint32_t round;

	scene_init(&s);
	put_line(&s, s.child[0], 0); /* but it ends at 2000 */
	put_line(&s, s.child[1], 0);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	cr_expect_null(protos_misfit(p, &s.build));
	cr_expect_null(misfit_with(p, &s, s.parent, 1));
	for (round = 1; round < 4; round++) /* each counts once */
		cr_expect_null(misfit_with(p, &s, s.child[0], round));
	cr_expect_eq(changes, 0);
	cr_expect_str_eq(misfit_with(p, &s, s.child[1], 4), "layout-lines");
	cr_expect_eq(changes, 1);
	cr_expect_null(protos_misfit(p, &other));
	cr_expect_null(misfit_with(p, &s, s.between, 5));
	cr_expect_eq(changes, 2);
	arena_free(&s.a);
}

/* ---- of samples ------------------------------------------------------------------------------ */

/* The arena as it is now, where its pointers say that it lies. */
static void show(const struct scene *s)
{
	static void *at;

	if (!at)
		at = mmap((void *)ARENA_BASE, ARENA_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_eq(at, (void *)ARENA_BASE);
	memcpy(at, s->a->bytes, ARENA_SIZE);
}

/* child 0, called by a function that the parent called; in the round in hand. */
static void sample_again(const struct scene *s, struct symbolizer *sym)
{
	const uint64_t stack[] = {s->child[0], s->between, s->parent};
	const uint32_t pc[] = {1, 0, CALL_AT};
	struct lb_rec_sample rec = {.sum = 7, .pid = (uint32_t)getpid(), .epoch = 1, .state = 'I'};
	uint32_t i;

	show(s);
	for (i = 0; i < LENGTH(stack); i++)
		rec.stack.frame[i] =
			(struct lb_frame){.word = LB_FRAME_WORD(LB_FRAME_LUA, 0, stack[i]),
					  .pc = pc[i],
					  .print = print_of(s, stack[i])};
	rec.stack.n = LENGTH(stack);
	cr_assert_eq(symbolizer_sample(sym, &rec, 1, &s->build), 0);
}

static void sample(const struct scene *s, struct symbolizer *sym)
{
	symbolizer_round(sym);
	sample_again(s, sym);
}

static const char *last_leaf(const struct prof *prof)
{
	struct prof_row row;

	prof_row(prof, prof_nrows(prof) - 1, &row);
	return prof_frame(prof, row.frames[0])->defname;
}

static void change_text(const struct scene *s)
{
	arena_put(s->a, s->one, "uno", 3);
}

/* As when a chunk is loaded again: its children are the same, and took each other's addresses. */
static void change_children(const struct scene *s)
{
	arena_put64(s->a, s->children, s->child[1]);
	arena_put64(s->a, s->children + 8, s->child[0]);
}

/* A parent's name for a child is void with the parent, whoever called the child. */
Test(protos, names_go_with_the_parent)
{
	static const struct {
		void (*change)(const struct scene *s);
		const char *name;
	} cases[] = {{change_text, "uno"}, {change_children, "two"}};
	size_t i;

	for (i = 0; i < LENGTH(cases); i++) {
		struct prof *prof __cleanup(prof_free) = NULL;
		struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
		struct scene s;

		scene_init(&s);
		cr_assert_eq(prof_new(&prof), 0);
		cr_assert_eq(symbolizer_new(prof, &sym), 0);
		cr_assert_eq(symbolizer_process(sym, getpid(), 1), 0);
		sample(&s, sym);
		cr_assert_eq(prof_samples(prof), 1);
		cr_assert_str_eq(last_leaf(prof), "one");
		cases[i].change(&s);
		sample(&s, sym);
		cr_expect_eq(prof_samples(prof), 1, "which of the two was it?");
		sample_again(&s, sym);
		cr_expect_eq(prof_samples(prof), 1, "in this round");
		cr_expect_gt(symbolizer_changes(sym), 0);
		sample(&s, sym);
		cr_expect_eq(prof_samples(prof), 2);
		cr_expect_str_eq(last_leaf(prof), cases[i].name);
		sample_again(&s, sym);
		cr_expect_eq(prof_samples(prof), 3);
		cr_expect_eq(prof_nrows(prof), 2);
		arena_free(&s.a);
	}
}

/* Samples of a VM of another layout are lost, whatever they show. */
Test(protos, no_samples_of_another_layout)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
	struct prof_loss loss;
	struct scene s;

	scene_init(&s);
	put_line(&s, s.child[0], 0);
	put_line(&s, s.between, 0);
	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(symbolizer_new(prof, &sym), 0);
	cr_assert_eq(symbolizer_process(sym, getpid(), 1), 0);
	sample(&s, sym);
	sample_again(&s, sym);
	sample(&s, sym);
	cr_expect_eq(prof_samples(prof), 0);
	cr_expect_eq(prof_nrows(prof), 0);
	cr_assert_eq(prof_nlosses(prof), 1);
	prof_loss(prof, 0, &loss);
	cr_expect_str_eq(loss.reason, "layout-lines");
	cr_expect_eq(loss.count, 3);
	arena_free(&s.a);
}

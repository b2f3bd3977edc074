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
#include "lua/puc/proto.h"
#include "sym/symbolizer.h"
#include <unwind/puc/fingerprint.h>

/* function one() end function two() end: names and children that the fingerprint does not reach */
static const struct puc_code_ins main_code[] = {
	{I_CLOSURE, 0, 4, 0}, {I_DATA, 0, 0, 0},   {I_DATA, 0, 0, 0}, {I_SETGLOBAL, 4, 0, 0},
	{I_CLOSURE, 0, 5, 0}, {I_DATA, 0, 0, 0},   {I_DATA, 0, 0, 0}, {I_SETGLOBAL, 5, 0, 0},
	{I_CALL, 1, 0, 0},    {I_RETURN, 0, 0, 0},
};
#define CALL_AT 8
static const char *const main_k[] = {"a", "b", "c", "d", "one", "two", NULL};

struct protos_scene {
	struct test_arena *a;
	struct lb_build build;
	uint64_t child[2], between, parent;
	uint64_t one; /* its text */
	uint64_t children;
};

static uint64_t find(const struct protos_scene *s, const void *bytes, size_t n)
{
	const uint8_t *at = memmem(s->a->bytes, s->a->used, bytes, n);

	cr_assert_not_null(at);
	return ARENA_BASE + (uint64_t)(at - s->a->bytes);
}

static void scene_init(struct protos_scene *s)
{
	static const struct puc_code_ins calls[] = {{I_CALL, 1, 0, 0}, {I_RETURN, 0, 0, 0}};
	uint64_t children[PUC_FP_PS + 2];
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
	for (i = 0; i < PUC_FP_PS; i++)
		children[i] = s->between;
	memcpy(children + PUC_FP_PS, s->child, sizeof(s->child));
	s->parent = puc_code_proto(s->a, &(struct puc_code_source){
						 .code = main_code,
						 .ncode = LENGTH(main_code),
						 .k = main_k,
						 .children = children,
						 .nchildren = LENGTH(children),
					 });
	arena_take(s->a, 64);
	s->one = find(s, "one", 4);
	s->children = find(s, s->child, sizeof(s->child));
}

static uint32_t print_of(const struct protos_scene *s, uint64_t addr)
{
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;

	cr_assert_eq(puc_proto_read(arena_mem(s->a), s->a->puc, addr, &p), 0);
	return puc_proto_fingerprint(p);
}

static void on_change(void *arg)
{
	++*(unsigned *)arg;
}

/* changed() is not called for a prototype that protos_get() has not returned: no result depends on
 * it, and there are as many as there are functions. */
Test(protos, changed_is_what_was_shown)
{
	struct protos *p __cleanup(protos_free) = NULL;
	const struct protos_entry *entry;
	struct lb_rec_proto rec = {0};
	unsigned changes = 0;
	struct protos_scene s;
	uint32_t fp;

	scene_init(&s);
	fp = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	cr_assert_not_null(protos_get(p, &s.build, s.child[0], print_of(&s, s.child[0]), 1));
	rec.proto = s.parent;
	rec.fp = fp;
	cr_assert_eq(protos_put(p, &rec, &s.build, 1), 0);
	entry = protos_get(p, &s.build, s.parent, fp, 1);
	cr_assert_not_null(entry);
	cr_assert_str_eq(protos_definition(entry, s.child[0]), "one");
	cr_expect_eq(changes, 0);

	arena_put(s.a, s.one, "uno", 3);
	cr_assert_eq(print_of(&s, s.parent), fp);
	entry = protos_get(p, &s.build, s.parent, fp, 2);
	cr_expect_eq(changes, 1);
	cr_expect(entry->ambiguous);
	entry = protos_get(p, &s.build, s.parent, fp, 3);
	cr_expect_not(entry->ambiguous);
	cr_expect_eq(changes, 1);
	cr_expect_str_eq(protos_definition(entry, s.child[0]), "uno");
	arena_free(&s.a);
}

/* A name that was read from tables counts if the prototype is still there, and goes with it. */
Test(protos, the_name_that_a_host_has)
{
	struct protos *p __cleanup(protos_free) = NULL;
	const struct protos_entry *entry;
	unsigned changes = 0;
	struct protos_scene s;
	uint32_t fp;

	scene_init(&s);
	fp = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	entry = protos_get(p, &s.build, s.parent, fp, 1);
	cr_expect_null(entry->kept_as);
	cr_assert_eq(protos_set_kept(p, entry, "f_old"), 0);
	cr_expect_str_eq(protos_get(p, &s.build, s.parent, fp, 2)->kept_as, "f_old");

	arena_put(s.a, s.one, "uno", 3);
	cr_assert_eq(print_of(&s, s.parent), fp);
	cr_expect_eq(protos_set_kept(p, entry, "f_new"), -ESTALE);
	cr_expect_str_eq(entry->kept_as, "f_old");
	cr_expect_null(protos_get(p, &s.build, s.parent, fp, 3)->kept_as, "another took its place");
	cr_assert_eq(protos_set_kept(p, entry, "f_new"), 0);
	protos_end(p);
	cr_expect_eq(protos_set_kept(p, entry, "f_later"), -ESTALE);
	cr_expect_str_eq(entry->kept_as, "f_new");
	arena_free(&s.a);
}

static void on_evicted(void *arg, uint64_t addr)
{
	*(uint64_t *)arg = addr;
}

/*
 * Those that no sample has shown for a while are freed, and read again. Another prototype that took
 * the address meanwhile is noticed, though it has the same fingerprint.
 */
Test(protos, evicted)
{
	struct protos *p __cleanup(protos_free) = NULL;
	const struct protos_entry *entry;
	uint64_t evicted = 0;
	unsigned changes = 0;
	struct protos_scene s;
	uint32_t fp;

	scene_init(&s);
	fp = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	cr_assert_not_null(protos_get(p, &s.build, s.parent, fp, 1));
	cr_assert_not_null(protos_get(p, &s.build, s.child[0], print_of(&s, s.child[0]), 2));
	protos_evict(p, 1, on_evicted, &evicted);
	cr_expect_eq(protos_kept(p), 2);
	protos_evict(p, 2, on_evicted, &evicted);
	cr_expect_eq(protos_kept(p), 1);
	cr_expect_eq(evicted, s.parent);
	entry = protos_get(p, &s.build, s.parent, fp, 3);
	cr_assert_not_null(entry->proto);
	cr_expect_not(entry->ambiguous);
	cr_expect_str_eq(protos_definition(entry, s.child[0]), "one");
	cr_expect_eq(changes, 0, "no frame of this profile depends on what was evicted");

	protos_evict(p, 4, on_evicted, &evicted);
	cr_expect_eq(protos_kept(p), 0);
	arena_put(s.a, s.one, "uno", 3);
	cr_assert_eq(print_of(&s, s.parent), fp);
	entry = protos_get(p, &s.build, s.parent, fp, 5);
	cr_expect(entry->ambiguous);
	entry = protos_get(p, &s.build, s.parent, fp, 6);
	cr_expect_not(entry->ambiguous);
	cr_expect_str_eq(protos_definition(entry, s.child[0]), "uno");
	arena_free(&s.a);
}

/* Memory that may be unmapped. */
struct mapping {
	struct lb_mem mem;
	const struct lb_mem *under;
	int gone; /* -errno of each read; 0: it is there */
};

static int read_mapping(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mapping *m = (const struct mapping *)mem;

	return m->gone ? m->gone : mem_read(m->under, dst, size, addr);
}

/* Shows a prototype until BPF makes its fingerprint once in an epoch; the next round is 9. */
static void begin_sharing(struct protos *p, const struct protos_scene *s, uint64_t addr,
			  uint32_t fp)
{
	uint32_t round;

	for (round = 1; round < 9; round++) {
		cr_assert_not_null(protos_get(p, &s->build, addr, fp, round));
		protos_sampled(p, 128);
		cr_expect_eq(protos_share(p, round), round >= 5, "%u", round);
	}
}

/* A list of all objects that is a circle, within the pages that are read once: counting ends. */
Test(protos, a_list_of_objects_that_is_a_circle, .timeout = 60)
{
	struct protos *p __cleanup(protos_free) = NULL;
	const struct protos_entry *entry;
	unsigned changes = 0;
	struct protos_scene s;

	scene_init(&s);
	arena_put64(s.a, s.child[0], s.child[1]);
	arena_put64(s.a, s.child[1], s.between);
	arena_put64(s.a, s.between, s.child[1]);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	entry = protos_get(p, &s.build, s.child[0], print_of(&s, s.child[0]), 1);
	cr_assert_not_null(entry);
	cr_expect_not_null(entry->proto);
	cr_expect(entry->order <= 3 || entry->order == PROF_NO_ORDER, "%u", entry->order);
}

/* New prototypes put off the steady state, and rounds with few samples do not count for much. */
Test(protos, a_process_that_is_steady)
{
	struct protos *p __cleanup(protos_free) = NULL;
	unsigned changes = 0;
	uint32_t round, fp;
	struct protos_scene s;

	scene_init(&s);
	fp = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	for (round = 1; round < 30; round++) {
		protos_get(p, &s.build, s.parent, fp, round);
		if (round == 10)
			protos_get(p, &s.build, s.child[0], print_of(&s, s.child[0]), round);
		if (round == 11)
			protos_get(p, &s.build, s.child[1], print_of(&s, s.child[1]), round);
		protos_sampled(p, round < 10 ? 50 : 100);
		cr_expect_eq(protos_share(p, round), round >= 16, "%u", round);
	}
}

/* An image in which an address was used again: until BPF proves all samples, it is ambiguous. */
Test(protos, addresses_that_are_used_again)
{
	enum { KEPT, ANOTHER, FREED, HALF_FREED, SAME_FP, UNMAPPED, CASES };
	int i;

	for (i = 0; i < CASES; i++) {
		struct protos *p __cleanup(protos_free) = NULL;
		struct mapping map = {.mem.read = read_mapping};
		const struct protos_entry *entry;
		bool freed = i == FREED || i == HALF_FREED || i == UNMAPPED;
		unsigned changes = 0;
		uint32_t fp, round;
		struct protos_scene s;

		scene_init(&s);
		fp = print_of(&s, s.parent);
		map.under = arena_mem(s.a);
		cr_assert_eq(protos_new(&map.mem, on_change, &changes, &p), 0);
		begin_sharing(p, &s, s.parent, fp);
		switch (i) {
		case ANOTHER:
			arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
			break;
		case FREED:
			arena_put(s.a, s.parent + PUC_GC_TT, "", 1);
			break;
		case HALF_FREED: /* lua_close() frees strings first */
			arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
			arena_put(s.a, s.one - s.a->puc->s_text + PUC_GC_TT, "", 1);
			break;
		case SAME_FP:
			arena_put(s.a, s.one, "uno", 3);
			break;
		case UNMAPPED:
			map.gone = -EFAULT;
			break;
		}
		arena_mem(s.a);
		entry = protos_get(p, &s.build, s.parent, fp, 9);
		cr_assert_not_null(entry);
		cr_expect_eq(entry->ambiguous, i == SAME_FP || i == ANOTHER, "case %d", i);
		cr_expect_eq(entry->waits, freed, "case %d", i);
		cr_expect_eq(protos_share(p, 9), i == KEPT, "case %d", i);
		for (round = 10; round < 9 + PROTOS_WAIT; round++)
			cr_expect_eq(protos_get(p, &s.build, s.parent, fp, round)->waits, freed,
				     "case %d", i);
		entry = protos_get(p, &s.build, s.parent, fp, 9 + PROTOS_WAIT);
		cr_expect_not(entry->waits, "case %d", i);
		cr_expect_eq(entry->ambiguous, freed, "case %d: the process lives on", i);
		/* each sample is proved by now */
		entry = protos_get(p, &s.build, s.parent, fp, 9 + PROTOS_WAIT + 5);
		cr_expect_not(entry->ambiguous, "case %d", i);
		cr_expect_not(entry->waits, "case %d", i);
		arena_free(&s.a);
	}
}

/* What is known of a process that has ended, or of an image that has, counts. */
Test(protos, of_what_has_ended)
{
	int i;

	for (i = 0; i < 3; i++) {
		struct protos *p __cleanup(protos_free) = NULL;
		struct mapping map = {.mem.read = read_mapping};
		const struct protos_entry *entry;
		unsigned changes = 0;
		struct protos_scene s;
		uint32_t fp;

		scene_init(&s);
		fp = print_of(&s, s.parent);
		map.under = arena_mem(s.a);
		cr_assert_eq(protos_new(&map.mem, on_change, &changes, &p), 0);
		begin_sharing(p, &s, s.parent, fp);
		if (i) { /* first its VM was closed */
			map.gone = -EFAULT;
			cr_expect(protos_get(p, &s.build, s.parent, fp, 9)->waits);
		}
		if (i < 2)
			map.gone = -ESRCH;
		else
			protos_end(p);
		entry = protos_get(p, &s.build, s.parent, fp, 10);
		cr_assert_not_null(entry->proto);
		cr_expect_not(entry->waits, "%d", i);
		cr_expect_not(entry->ambiguous, "%d", i);
		entry = protos_get(p, &s.build, s.parent, fp, 9 + PROTOS_WAIT);
		cr_expect_not(entry->ambiguous, "%d", i);
		arena_free(&s.a);
	}
}

/* What is ambiguous in a round is so in the next ones until all that BPF had sent by then is read. */
Test(protos, doubt_lasts_until_all_is_read)
{
	struct protos *p __cleanup(protos_free) = NULL;
	unsigned changes = 0;
	uint32_t was, round;
	struct protos_scene s;

	scene_init(&s);
	was = print_of(&s, s.parent);
	cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
	protos_get(p, &s.build, s.parent, was, 1);
	arena_put(s.a, s.one, "uno", 3); /* another one of the same fingerprint */
	arena_mem(s.a);
	for (round = 2; round < 9; round++) {
		cr_expect(protos_get(p, &s.build, s.parent, was, round)->ambiguous, "%u", round);
		protos_left(p, round);
	}
	cr_expect(protos_get(p, &s.build, s.parent, was, 9)->ambiguous);
	cr_expect_not(protos_get(p, &s.build, s.parent, was, 10)->ambiguous);
	arena_free(&s.a);
}

/* BPF is made to prove all samples a while after the first address was used again. */
Test(protos, samples_of_an_epoch)
{
	static const struct {
		uint32_t found, left, shown; /* rounds */
		bool ambiguous;
	} cases[] = {{9, 0, 10, true},
		     {9, 0, 11, true},
		     {9, 0, 12, false},
		     {9, 11, 13, true},
		     {9, 11, 14, false}};
	size_t i;

	for (i = 0; i < LENGTH(cases); i++) {
		struct protos *p __cleanup(protos_free) = NULL;
		uint32_t parent, between, round;
		unsigned changes = 0;
		struct protos_scene s;

		scene_init(&s);
		parent = print_of(&s, s.parent);
		between = print_of(&s, s.between);
		cr_assert_eq(protos_new(arena_mem(s.a), on_change, &changes, &p), 0);
		protos_get(p, &s.build, s.between, between, 1);
		begin_sharing(p, &s, s.parent, parent);
		arena_put(s.a, s.parent + s.a->puc->p_linedefined, "\x4d", 1);
		arena_mem(s.a);
		cr_expect(protos_get(p, &s.build, s.parent, parent, cases[i].found)->ambiguous);
		for (round = 9; round <= cases[i].left; round++)
			protos_left(p, round);
		arena_put(s.a, s.between + s.a->puc->p_linedefined, "\x4e", 1);
		arena_mem(s.a);
		cr_expect_eq(protos_get(p, &s.build, s.between, between, cases[i].shown)->ambiguous,
			     cases[i].ambiguous, "%zu", i);
		arena_free(&s.a);
	}
}

static void put_line(const struct protos_scene *s, uint64_t proto, uint32_t line)
{
	arena_put32(s->a, proto + s->a->puc->p_linedefined, line);
}

static const char *misfit_with(struct protos *p, const struct protos_scene *s, uint64_t proto,
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
	struct protos_scene s;
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
static void show(const struct protos_scene *s)
{
	static void *at;

	if (!at)
		at = mmap((void *)ARENA_BASE, ARENA_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_eq(at, (void *)ARENA_BASE);
	memcpy(at, s->a->bytes, ARENA_SIZE);
}

/* A sample of the current round: child 0, called by a function that the parent called. */
static const char *sample_again(const struct protos_scene *s, struct image *image)
{
	const uint64_t stack[] = {s->child[0], s->between, s->parent};
	const uint32_t pc[] = {1, 0, CALL_AT};
	struct lb_rec_sample rec = {.hash = 7, .pid = (uint32_t)getpid(), .epoch = 1, .state = 'I'};
	struct symbolized got = {};
	uint32_t i;

	show(s);
	for (i = 0; i < LENGTH(stack); i++)
		rec.stack.frame[i] =
			(struct lb_frame){.word = LB_FRAME_WORD(LB_FRAME_LUA, 0, stack[i]),
					  .pc = pc[i],
					  .fp = print_of(s, stack[i])};
	rec.stack.n = LENGTH(stack);
	cr_assert_eq(symbolizer_sample(image, &rec, 1, &s->build, "PUC Lua 5.4.4", &got), 0);
	return got.lost;
}

static const char *sample(const struct protos_scene *s, struct symbolizer *sym, struct image *image)
{
	symbolizer_round(sym);
	return sample_again(s, image);
}

static const char *last_leaf(const struct prof *prof)
{
	struct prof_row row;

	prof_row(prof, prof_nrows(prof) - 1, &row);
	return prof_frame(prof, row.frames[0])->defname;
}

static void change_text(const struct protos_scene *s)
{
	arena_put(s->a, s->one, "uno", 3);
}

/* As when a chunk is loaded again: its children are the same, and took each other's addresses. */
static void change_children(const struct protos_scene *s)
{
	arena_put64(s->a, s->children, s->child[1]);
	arena_put64(s->a, s->children + 8, s->child[0]);
}

/* A parent's name for a child is void with the parent, whoever called the child. */
Test(protos, names_go_with_the_parent)
{
	static const struct {
		void (*change)(const struct protos_scene *s);
		const char *name;
	} cases[] = {{change_text, "uno"}, {change_children, "two"}};
	size_t i;

	for (i = 0; i < LENGTH(cases); i++) {
		struct prof *prof __cleanup(prof_free) = NULL;
		struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
		struct image *image __cleanup(image_free) = NULL;
		struct protos_scene s;

		scene_init(&s);
		cr_assert_eq(prof_new(&prof), 0);
		cr_assert_eq(symbolizer_new(prof, &sym), 0);
		cr_assert_eq(image_new(sym, getpid(), &image), 0);
		sample(&s, sym, image);
		cr_assert_eq(prof_samples(prof), 1);
		cr_assert_str_eq(last_leaf(prof), "one");
		cases[i].change(&s);
		cr_expect_str_eq(sample(&s, sym, image), "proto-ambiguous");
		cr_expect_eq(prof_samples(prof), 1, "which of the two was it?");
		cr_expect_str_eq(sample_again(&s, image), "proto-ambiguous");
		cr_expect_eq(prof_samples(prof), 1, "in this round");
		cr_expect_gt(symbolizer_changes(sym), 0);
		sample(&s, sym, image);
		cr_expect_eq(prof_samples(prof), 2);
		cr_expect_str_eq(last_leaf(prof), cases[i].name);
		sample_again(&s, image);
		cr_expect_eq(prof_samples(prof), 3);
		cr_expect_eq(prof_nrows(prof), 2);
		arena_free(&s.a);
	}
}

static void ignore(void *arg, uint64_t proto)
{
	(void)arg, (void)proto;
}

/* The frames of a profile that begins are its own, and the one before stays as it is. */
Test(protos, another_profile)
{
	struct prof *first __cleanup(prof_free) = NULL, *next __cleanup(prof_free) = NULL;
	struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
	struct image *image __cleanup(image_free) = NULL;
	struct protos_scene s;

	scene_init(&s);
	cr_assert_eq(prof_new(&first), 0);
	cr_assert_eq(prof_new(&next), 0);
	cr_assert_eq(symbolizer_new(first, &sym), 0);
	cr_assert_eq(image_new(sym, getpid(), &image), 0);
	cr_assert_null(sample(&s, sym, image));
	cr_expect_gt(image_sizes(image).frames, 0);
	symbolizer_begin(sym, next);
	image_begin_profile(image, ignore, NULL);
	cr_expect_eq(image_sizes(image).frames, 0);
	cr_expect_eq(image_sizes(image).prototypes, 3, "names stay");
	cr_assert_null(sample(&s, sym, image));
	cr_expect_eq(prof_samples(first), 1);
	cr_expect_eq(prof_samples(next), 1);
	cr_expect_eq(prof_nframes(next), 3);
	cr_expect_str_eq(last_leaf(next), "one");
	arena_free(&s.a);
}

/* Samples of a VM of another layout are lost, whatever they show. */
Test(protos, no_samples_of_another_layout)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
	struct image *image __cleanup(image_free) = NULL;
	struct protos_scene s;

	scene_init(&s);
	put_line(&s, s.child[0], 0);
	put_line(&s, s.between, 0);
	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(symbolizer_new(prof, &sym), 0);
	cr_assert_eq(image_new(sym, getpid(), &image), 0);
	cr_expect_str_eq(sample(&s, sym, image), "layout-lines");
	cr_expect_str_eq(sample_again(&s, image), "layout-lines");
	cr_expect_str_eq(sample(&s, sym, image), "layout-lines");
	cr_expect_eq(prof_samples(prof), 0);
	cr_expect_eq(prof_nrows(prof), 0);
	arena_free(&s.a);
}

/* Each of the samples that are counted, and none of those that are lost. */
Test(protos, snapshot_lines_of_counted_samples)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct symbolizer *sym __cleanup(symbolizer_free) = NULL;
	struct image *image __cleanup(image_free) = NULL;
	static const struct lb_build build = {.family = LB_FAMILY_LJ};
	/* no trace is there, nor a prototype; a C function has its address as a name */
	struct lb_rec_sample rec = {.hash = 7,
				    .pid = (uint32_t)getpid(),
				    .epoch = 1,
				    .state = 'N',
				    .vm = 4096,
				    .traceno = 1,
				    .trace_fp = 1,
				    .stack.n = 1};
	struct symbolized got = {};

	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(symbolizer_new(prof, &sym), 0);
	cr_assert_eq(image_new(sym, getpid(), &image), 0);
	symbolizer_round(sym);
	rec.stack.frame[0].word = LB_FRAME_WORD(LB_FRAME_C, 0, 8192);
	cr_assert_eq(symbolizer_sample(image, &rec, 3, &build, "LuaJIT", &got), 0);
	cr_expect_null(got.lost);
	cr_expect_eq(symbolizer_snapshot_lines(sym), 3);
	rec.stack.frame[0].word = LB_FRAME_WORD(LB_FRAME_LUA, 0, 8192);
	cr_assert_eq(symbolizer_sample(image, &rec, 5, &build, "LuaJIT", &got), 0);
	cr_expect_str_eq(got.lost, "proto-collected");
	cr_expect_eq(symbolizer_snapshot_lines(sym), 3);
}

// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "prof/pprof.h"
#include "profile.pb-c.h"

TestSuite(prof_pprof);

struct saved {
	char *data;
	size_t len;
};

static struct saved save(const struct prof *prof)
{
	struct saved saved = {0};
	FILE *file = open_memstream(&saved.data, &saved.len);

	cr_assert_not_null(file);
	cr_assert_eq(pprof_write(prof, file), 0);
	fclose(file);
	return saved;
}

static const struct prof_frame frames[] = {
	{.kind = PROF_LUA,
	 .callname = "f",
	 .defname = "M.f",
	 .chunk = "@/a b/c.lua",
	 .firstline = 3,
	 .line = 9},
	{.kind = PROF_LUA, .callname = "", .chunk = "=x\x1b\xff", .firstline = 0, .line = -1},
	{.kind = PROF_LUA,
	 .defname = "",
	 .chunk = "return '\n'",
	 .firstline = INT32_MAX,
	 .line = INT32_MAX},
	{.kind = PROF_LUA, .chunk = NULL, .firstline = -5, .line = INT32_MIN},
	{.kind = PROF_LUA, .chunk = "table", .firstline = -1, .line = -1},
	{.kind = PROF_LUA, .chunk = "@", .firstline = 1},
	{.kind = PROF_LUA, .chunk = "@=odd", .firstline = 1},
	{.kind = PROF_BUILTIN, .addr = 55, .symbol = "string.rep", .line = -1},
	{.kind = PROF_BUILTIN, .addr = 56, .callname = "[builtin#55]"},
	{.kind = PROF_C, .addr = UINT64_MAX, .symbol = "lua_sleep"},
	{.kind = PROF_C, .addr = 0},
	{.kind = PROF_C, .chunk = "luajit", .addr = 0x92c0, .callname = "f"},
	{.kind = PROF_LUA,
	 .chunk = "@sd.lj",
	 .position = "3.1",
	 .shape = UINT32_MAX,
	 .order = UINT32_MAX,
	 .contents = UINT32_MAX,
	 .callname = "g"},
	{.kind = PROF_TAIL},
	{.kind = PROF_CUT},
	{.kind = PROF_OTHER, .line = -1},
};
enum { NFRAMES = sizeof(frames) / sizeof(frames[0]) };

static struct prof *sample_profile(void)
{
	struct prof *prof = NULL;
	/* readable: as they are recorded */
	static const struct prof_origin origins[] = {
		{.exe = "/usr/bin/luajit",
		 .cgroup = "/system.slice/x.service",
		 .container = "x.service",
		 .vm = "LuaJIT 2.1"},
		{.exe = "/tmp/\\x1b \xc3\xa4 (deleted)", .container = "", .vm = "PUC Lua 5.4.4"},
	};
	uint32_t ids[127], stack[127];
	struct prof_labels labels[] = {
		{'I', 1, 2, "luajit", 0, 0, NULL, 0, 0, false, 0},
		{'C', 0, UINT32_MAX, "", 0, 0, PROF_NO_ZONE, 0, 1, false, 0},
		{'\0', 3, 0, "\xff\x01 long name, longer", 0, 0, "", PROF_FINALISE, UINT32_MAX,
		 true, 0},
		{'X', 1, 1, "Compiled", 0, 0, "A*", PROF_IN_LOOP, 0, true, 0},
		{(char)0xe9, 1, 1, "a", 0, 0x7f3a2c0050, NULL, PROF_SWEEP, 3, false, 0},
		{'I', 1, 1, "a", 0, UINT64_MAX - 7 + PROF_MAIN, "\\x00 \xc3\xa4; 12", PROF_SWEEP, 4,
		 false, 0},
	};

	cr_assert_eq(prof_new(&prof), 0);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(prof_origin_id(prof, &origins[i], &labels[i + 2].origin), 0);
	for (size_t i = 0; i < NFRAMES; i++)
		cr_assert_eq(prof_frame_id(prof, &frames[i], &ids[i]), 0);
	for (size_t i = 0; i < 127; i++)
		stack[i] = ids[(i * 7) % NFRAMES];
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		cr_assert_eq(prof_add(prof, stack, 127 - i, &labels[i], i + 1), 0);
		cr_assert_eq(prof_add(prof, stack + i, 1, &labels[i], INT64_MAX - i), 0);
		cr_assert_eq(prof_add(prof, NULL, 0, &labels[i], 4), 0);
	}
	cr_assert_eq(prof_lose(prof, "ring-full", UINT64_MAX), 0);
	cr_assert_eq(prof_lose(prof, "odd \\x41 \xff\n: 5", 0), 0);
	prof_meta(prof)->period_ns = 10000000;
	prof_meta(prof)->time_ns = 1700000000000000001;
	prof_meta(prof)->duration_ns = INT64_MAX;
	return prof;
}

static void expect_str(const char *a, const char *b)
{
	if (a && b)
		cr_expect_str_eq(a, b);
	else
		cr_expect_eq(a, b);
}

static void expect_frame(const struct prof_frame *a, const struct prof_frame *b)
{
	cr_expect_eq(a->kind, b->kind);
	expect_str(a->callname, b->callname);
	expect_str(a->defname, b->defname);
	expect_str(a->chunk, b->chunk);
	expect_str(a->symbol, b->symbol);
	expect_str(a->position, b->position);
	cr_expect_eq(a->shape, b->shape);
	cr_expect_eq(a->contents, b->contents);
	cr_expect_eq(a->order, b->order);
	cr_expect_eq(a->addr, b->addr);
	cr_expect_eq(a->firstline, b->firstline);
	cr_expect_eq(a->line, b->line);
}

static void expect_row(const struct prof_row *a, const struct prof_row *b)
{
	cr_assert_eq(a->nframes, b->nframes);
	if (a->nframes)
		cr_expect_arr_eq(a->frames, b->frames, a->nframes * sizeof(*a->frames));
	cr_expect_eq(a->count, b->count);
	cr_expect_eq(a->labels.vmstate, b->labels.vmstate);
	cr_expect_eq(a->labels.pid, b->labels.pid);
	cr_expect_eq(a->labels.tid, b->labels.tid);
	cr_expect_str_eq(a->labels.comm, b->labels.comm);
	cr_expect_eq(a->labels.coroutine, b->labels.coroutine);
	cr_expect_eq(a->labels.cause, b->labels.cause);
	cr_expect_eq(a->labels.trace, b->labels.trace);
	cr_expect_eq(a->labels.snapshot_line, b->labels.snapshot_line);
	cr_expect_eq(!a->labels.zone, !b->labels.zone);
	if (a->labels.zone)
		cr_expect_str_eq(a->labels.zone, b->labels.zone);
}

static void expect_origin(const struct prof_origin *a, const struct prof_origin *b)
{
	cr_expect_str_eq(a->exe, b->exe);
	cr_expect_str_eq(a->cgroup, b->cgroup);
	cr_expect_str_eq(a->container, b->container);
	cr_expect_str_eq(a->vm, b->vm);
}

static void expect_same(const struct prof *a, const struct prof *b)
{
	struct prof_row x, y;
	struct prof_loss k, l;

	cr_assert_eq(prof_nframes(a), prof_nframes(b));
	for (uint32_t i = 0; i < prof_nframes(a); i++)
		expect_frame(prof_frame(a, i), prof_frame(b, i));
	cr_assert_eq(prof_nrows(a), prof_nrows(b));
	for (size_t i = 0; i < prof_nrows(a); i++) {
		prof_row(a, i, &x);
		prof_row(b, i, &y);
		expect_row(&x, &y);
		expect_origin(prof_origin(a, x.labels.origin), prof_origin(b, y.labels.origin));
	}
	cr_assert_eq(prof_nlosses(a), prof_nlosses(b));
	for (size_t i = 0; i < prof_nlosses(a); i++) {
		prof_loss(a, i, &k);
		prof_loss(b, i, &l);
		cr_expect_str_eq(k.reason, l.reason);
		cr_expect_eq(k.count, l.count);
	}
	cr_expect_eq(prof_samples(a), prof_samples(b));
	cr_expect_arr_eq(prof_meta_of(a), prof_meta_of(b), sizeof(struct prof_meta));
}

Test(prof_pprof, what_is_saved_is_loaded)
{
	struct prof *prof = sample_profile(), *loaded = NULL;
	struct saved saved = save(prof), again;
	struct error err = {0};

	cr_assert_eq(pprof_read(saved.data, saved.len, "x", &loaded, &err), 0, "%s", err.what);
	expect_same(prof, loaded);
	again = save(loaded);
	cr_expect_eq(saved.len, again.len);
	cr_expect_arr_eq(saved.data, again.data, saved.len);
	free(saved.data);
	free(again.data);
	prof_free(&prof);
	prof_free(&loaded);
}

/* What the reader takes for the message tree, with budget_alloc() of unpack.c in mind. */
static void *count_alloc(void *data, size_t size)
{
	*(size_t *)data += size;
	return malloc(size);
}

static void count_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

/* The file without gzip, and the tree, of what took `bytes` of a profile's bounds. */
static void expect_within(const struct prof *prof, size_t bytes, const char *what)
{
	struct saved s = save(prof);
	size_t size = 64 << 20, tree = 0;
	__free uint8_t *file = malloc(size);
	z_stream zip = {
		.next_in = (void *)s.data, .avail_in = s.len, .next_out = file, .avail_out = size};
	ProtobufCAllocator allocator = {count_alloc, count_free, &tree};
	Pprof__Profile *profile;

	cr_assert_eq(inflateInit2(&zip, 31), Z_OK);
	cr_assert_eq(inflate(&zip, Z_FINISH), Z_STREAM_END);
	size -= zip.avail_out;
	inflateEnd(&zip);
	profile = pprof__profile__unpack(&allocator, size, file);
	cr_assert_not_null(profile);
	pprof__profile__free_unpacked(profile, &allocator);
	cr_expect_leq(size, bytes + 1000, "%s: %zu bytes for %zu", what, size, bytes);
	cr_expect_leq(tree, 4 * bytes + 20000, "%s: a tree of %zu bytes for %zu", what, tree,
		      bytes);
	free(s.data);
}

/* Adds frames until the bound is reached: the profile is saved, and loaded as it is. */
static void fill_frames(struct prof_frame frame, char *changes, const char *what)
{
	size_t bytes = 2 << 20, n = 0;
	struct prof *prof = NULL;
	uint32_t id;

	cr_assert_eq(prof_new(&prof), 0);
	prof_limit(prof, bytes, 0);
	do {
		char digits[13];

		snprintf(digits, sizeof(digits), "%012zu", ++n);
		if (changes)
			memcpy(changes, digits, 12);
		frame.addr = UINT64_MAX - n;
		cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	} while (prof_frame(prof, id)->kind != PROF_OTHER);
	expect_within(prof, bytes, what);
	prof_free(&prof);
}

Test(prof_pprof, what_a_full_profile_takes_the_reader_accepts)
{
	char name[PROF_MAX_NAME + 1] = {0}, chunk[PROF_MAX_CHUNK + 1] = {0};
	struct prof_frame frame = {.kind = PROF_C, .firstline = INT32_MAX, .line = INT32_MIN};

	memset(name, 0xff, sizeof(name) - 1);
	memset(chunk, 0xff, sizeof(chunk) - 1);
	fill_frames(frame, NULL, "addresses");
	frame.symbol = name;
	fill_frames(frame, name, "symbols");
	frame.callname = frame.defname = frame.symbol = name + 500;
	fill_frames(frame, name + 500, "three names");
	frame = (struct prof_frame){
		.kind = PROF_LUA, .firstline = INT32_MAX, .line = INT32_MIN, .chunk = chunk};
	fill_frames(frame, NULL, "one text");
	fill_frames(frame, chunk, "texts");
	chunk[0] = '@';
	fill_frames(frame, chunk + 1, "paths");
	frame.firstline = -1;
	fill_frames(frame, chunk + 1, "libraries");
}

Test(prof_pprof, rows_of_a_full_profile_the_reader_accepts)
{
	static const size_t depths[] = {0, 0, 1, 8, 127, 5000};
	char comm[64], path[3001] = {};
	const struct prof_origin origin = {.string = {path, path + 1, path + 2, path + 3}};

	memset(comm, 0xff, sizeof(comm));
	memset(path, 0xff, sizeof(path) - 1);
	for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
		const char *name = d ? comm : comm + 40; /* that is short */
		uint32_t ids[5000], tid = 0;
		struct prof *prof = NULL;
		size_t before;

		cr_assert_eq(prof_new(&prof), 0);
		prof_limit(prof, 2 << 20, 2 << 20);
		for (size_t i = 0; i < 5000; i++) {
			struct prof_frame frame = {.kind = PROF_C, .addr = i};

			cr_assert_eq(prof_frame_id(prof, &frame, &ids[i]), 0);
		}
		do {
			char zone[16];
			struct prof_labels l = {
				(char)0xe9, UINT32_MAX, UINT32_MAX - ++tid, name, 0, 0, zone, 0, 0,
				false,	    0};

			snprintf(zone, sizeof(zone), "zone %u", tid);

			l.coroutine = (UINT64_MAX - 8 * tid) | PROF_MAIN;
			cr_assert_eq(prof_origin_id(prof, &origin, &l.origin), 0);

			snprintf(comm + 40, 24, "%u", tid);
			before = prof_other(prof);
			cr_assert_eq(prof_add(prof, ids, depths[d], &l, INT64_MAX / 100000), 0);
		} while (prof_other(prof) == before);
		expect_within(prof, 4 << 20, "rows");
		prof_free(&prof);
	}
}

Test(prof_pprof, an_empty_profile_too)
{
	struct prof *prof = NULL, *loaded = NULL;
	struct saved saved;

	cr_assert_eq(prof_new(&prof), 0);
	saved = save(prof);
	cr_assert_eq(pprof_read(saved.data, saved.len, "x", &loaded, NULL), 0);
	expect_same(prof, loaded);
	free(saved.data);
	prof_free(&prof);
	prof_free(&loaded);
}

Test(prof_pprof, a_full_disk_is_told)
{
	struct prof *prof = sample_profile();
	FILE *full = fopen("/dev/full", "w");

	cr_assert_not_null(full);
	cr_expect_eq(pprof_write(prof, full), -ENOSPC);
	fclose(full);
	prof_free(&prof);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static int load(const void *data, size_t len, struct error *err)
{
	struct prof *loaded = NULL;
	int rc = pprof_read(data, len, "x.pb.gz", &loaded, err);

	cr_expect_eq(rc == 0, loaded != NULL);
	prof_free(&loaded);
	return rc;
}

Test(prof_pprof, every_cut_of_a_file_is_refused)
{
	struct prof *prof = sample_profile();
	struct saved saved = save(prof);

	for (size_t len = 0; len < saved.len; len++) {
		struct error err = {0};

		cr_expect_lt(load(saved.data, len, &err), 0, "cut to %zu", len);
		cr_expect_eq(strncmp(err.what, "x.pb.gz: ", 9), 0);
	}
	free(saved.data);
	prof_free(&prof);
}

/* Each bit; or one of each byte, where a load takes 20 times as long. */
#ifdef __SANITIZE_ADDRESS__
#define BITS 1
#else
#define BITS 8
#endif

Test(prof_pprof, flipped_bytes_do_no_harm)
{
	struct prof *prof = sample_profile();
	struct saved saved = save(prof);
	size_t len = 1 << 20;
	unsigned char *plain = malloc(len);
	z_stream zip = {.next_in = (unsigned char *)saved.data,
			.avail_in = saved.len,
			.next_out = plain,
			.avail_out = len};

	cr_assert_eq(inflateInit2(&zip, 31), Z_OK);
	cr_assert_eq(inflate(&zip, Z_FINISH), Z_STREAM_END);
	len = zip.total_out;
	inflateEnd(&zip);
	cr_expect_eq(load(plain, len, NULL), 0, "gzip is not asked for");
	for (size_t i = 0; i < len; i++) {
		for (size_t bit = 0; bit < BITS; bit++) {
			unsigned char flip = 1 << (i + bit) % 8;

			plain[i] ^= flip;
			load(plain, len, NULL);
			plain[i] ^= flip;
		}
	}
	free(plain);
	free(saved.data);
	prof_free(&prof);
}

Test(prof_pprof, a_bomb_is_not_unpacked)
{
	size_t len = 300UL << 20, size = 4 << 20;
	void *zeros = calloc(1, 1 << 20), *bomb = malloc(size);
	z_stream zip = {.next_out = bomb, .avail_out = size};
	struct error err = {0};

	cr_assert_eq(deflateInit2(&zip, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	for (size_t done = 0; done < len; done += 1 << 20) {
		zip.next_in = zeros;
		zip.avail_in = 1 << 20;
		cr_assert_eq(deflate(&zip, done + (1 << 20) < len ? Z_NO_FLUSH : Z_FINISH) < 0, 0);
	}
	size -= zip.avail_out;
	deflateEnd(&zip);
	cr_expect_eq(load(bomb, size, &err), -E2BIG);
	cr_expect_str_eq(err.what, "x.pb.gz: unpacks to more than 256 MiB");
	free(zeros);
	free(bomb);
}

/* ---- files of other tools -------------------------------------------------------------------- */

struct other {
	Pprof__Profile profile;
	Pprof__ValueType type, *types[1];
	Pprof__Sample sample;
	Pprof__Location location, *locations[1];
	Pprof__Line line, *lines[1];
	Pprof__Function function, *functions[2];
	uint64_t ids[1];
	int64_t values[1];
	int64_t comments[1];
};

static char *strings[] = {"",	     "samples", "count",       "main.f",	   "_Zf",
			  "main.go", "cpu",	"nanoseconds", "luabpf: hand-made"};

/* One sample of one function, as a Go program's profile might be. */
static void other_init(struct other *o)
{
	pprof__profile__init(&o->profile);
	pprof__value_type__init(&o->type);
	pprof__sample__init(&o->sample);
	pprof__location__init(&o->location);
	pprof__line__init(&o->line);
	pprof__function__init(&o->function);
	o->profile.string_table = strings;
	o->profile.n_string_table = sizeof(strings) / sizeof(strings[0]);
	o->type.has_type = o->type.has_unit = 1;
	o->type.type = 1;
	o->type.unit = 2;
	o->types[0] = &o->type;
	o->profile.sample_type = o->types;
	o->profile.n_sample_type = 1;
	o->ids[0] = 77;
	o->values[0] = 5;
	o->sample.location_id = o->ids;
	o->sample.n_location_id = 1;
	o->sample.value = o->values;
	o->sample.n_value = 1;
	o->line.has_function_id = o->line.has_line = 1;
	o->line.function_id = 9;
	o->line.line = 12;
	o->lines[0] = &o->line;
	o->location.has_id = o->location.has_address = 1;
	o->location.id = 77;
	o->location.address = 0x1234;
	o->location.line = o->lines;
	o->location.n_line = 1;
	o->locations[0] = &o->location;
	o->profile.location = o->locations;
	o->profile.n_location = 1;
	o->function.has_id = o->function.has_name = 1;
	o->function.has_system_name = o->function.has_filename = 1;
	o->function.id = 9;
	o->function.name = 3;
	o->function.system_name = 4;
	o->function.filename = 5;
	o->functions[0] = o->functions[1] = &o->function;
	o->profile.function = o->functions;
	o->profile.n_function = 1;
	o->comments[0] = 8;
	o->profile.comment = o->comments;
}

static int load_packed(const struct other *o, ProtobufCBinaryData sample, struct prof **prof,
		       struct error *err)
{
	Pprof__Profile profile = o->profile;
	__free uint8_t *data = NULL;
	size_t len;

	profile.sample = &sample;
	profile.n_sample = 1;
	len = pprof__profile__get_packed_size(&profile);
	data = malloc(len);
	cr_assert_eq(pprof__profile__pack(&profile, data), len);
	return pprof_read(data, len, "go", prof, err);
}

static int load_other(const struct other *o, struct prof **prof, struct error *err)
{
	ProtobufCBinaryData sample = {.len = pprof__sample__get_packed_size(&o->sample)};
	__free uint8_t *data = sample.data = malloc(sample.len + 1);

	pprof__sample__pack(&o->sample, data);
	return load_packed(o, sample, prof, err);
}

Test(prof_pprof, another_tools_file_is_loaded)
{
	struct other o;
	struct prof *prof = NULL;
	const struct prof_frame *frame;

	other_init(&o);
	cr_assert_eq(load_other(&o, &prof, NULL), 0);
	cr_assert_eq(prof_nframes(prof), 1);
	frame = prof_frame(prof, 0);
	cr_expect_eq(frame->kind, PROF_LUA);
	cr_expect_str_eq(frame->callname, "main.f");
	cr_expect_str_eq(frame->chunk, "@main.go");
	cr_expect_eq(frame->line, 12);
	cr_expect_eq(prof_samples(prof), 5);
	prof_free(&prof);
}

Test(prof_pprof, luabpfs_file_rewritten_by_another_tool_is_known_by_its_comments)
{
	struct other o;
	struct prof *prof = NULL;

	other_init(&o);
	o.profile.n_comment = 1;
	cr_assert_eq(load_other(&o, &prof, NULL), 0);
	cr_expect_str_eq(prof_frame(prof, 0)->callname, "_Zf");
	cr_expect_str_eq(prof_frame(prof, 0)->defname, "main.f");
	prof_free(&prof);
}

Test(prof_pprof, an_unnamed_address_is_c)
{
	struct other o;
	struct prof *prof = NULL;

	other_init(&o);
	o.location.n_line = 0;
	cr_assert_eq(load_other(&o, &prof, NULL), 0);
	cr_expect_eq(prof_frame(prof, 0)->kind, PROF_C);
	cr_expect_eq(prof_frame(prof, 0)->addr, 0x1234);
	prof_free(&prof);
}

Test(prof_pprof, a_location_has_any_number_and_any_lines)
{
	static const uint64_t ids[] = {1, 77, 2, UINT64_MAX, 1};
	Pprof__Location locations[4], *all[4];
	struct prof *prof = NULL;
	struct prof_row row;
	Pprof__Line *twice[2];
	struct other o;

	other_init(&o);
	twice[0] = twice[1] = &o.line;
	for (size_t i = 0; i < 4; i++) {
		locations[i] = o.location;
		all[i] = &locations[i];
		locations[i].id = ids[i];
	}
	locations[0].n_line = 0; /* a C function */
	locations[2].line = twice;
	locations[2].n_line = 2;
	o.profile.location = all;
	o.profile.n_location = 4;
	o.sample.location_id = (uint64_t *)ids;
	o.sample.n_location_id = 5;
	cr_assert_eq(load_other(&o, &prof, NULL), 0);
	cr_assert_eq(prof_nrows(prof), 1);
	prof_row(prof, 0, &row);
	cr_assert_eq(row.nframes, 6);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(prof_frame(prof, row.frames[i])->kind,
			     i == 0 || i == 5 ? PROF_C : PROF_LUA, "%zu", i);
	prof_free(&prof);
}

Test(prof_pprof, a_damaged_sample_is_refused)
{
	uint8_t bytes[] = {0x0a, 5, 1}; /* five bytes of ids, one is there */
	struct prof *prof = NULL;
	struct error err = {0};
	struct other o;

	other_init(&o);
	cr_expect_eq(load_packed(&o, (ProtobufCBinaryData){sizeof(bytes), bytes}, &prof, &err),
		     -EBADMSG);
	cr_expect_str_eq(err.what, "go: not a pprof profile, or a damaged one");
}

Test(prof_pprof, time_is_counted_by_the_period)
{
	struct other o;
	struct prof *prof = NULL;
	struct error err = {0};

	other_init(&o);
	o.type.type = 6;
	o.type.unit = 7;
	o.values[0] = 50;
	cr_expect_eq(load_other(&o, &prof, &err), -EINVAL, "no period, no count");
	cr_expect_not_null(strstr(err.what, "counts no samples"));
	o.profile.period_type = &o.type;
	o.profile.has_period = 1;
	o.profile.period = 10;
	cr_assert_eq(load_other(&o, &prof, NULL), 0);
	cr_expect_eq(prof_samples(prof), 5);
	prof_free(&prof);
}

static void expect_refused(const struct other *o, const char *because)
{
	struct prof *prof = NULL;
	struct error err = {0};
	int rc = load_other(o, &prof, &err);

	cr_expect(rc == -EINVAL || rc == -EBADMSG, "%s: %d", because, rc);
	cr_expect_null(prof);
	cr_expect_not_null(strstr(err.what, because), "%s", err.what);
}

Test(prof_pprof, nonsense_is_refused)
{
	struct other o;

	other_init(&o);
	o.function.name = 99;
	expect_refused(&o, "string 99 of 9");
	other_init(&o);
	o.function.filename = -1;
	expect_refused(&o, "string -1 of 9");
	other_init(&o);
	o.line.function_id = 10;
	expect_refused(&o, "names function 10, which is not there");
	other_init(&o);
	o.ids[0] = 78;
	expect_refused(&o, "names location 78, which is not there");
	other_init(&o);
	o.profile.n_function = 2;
	expect_refused(&o, "two functions with id 9");
	other_init(&o);
	o.location.id = 0;
	expect_refused(&o, "a location with id 0");
	other_init(&o);
	o.values[0] = -1;
	expect_refused(&o, "negative counts");
	other_init(&o);
	o.sample.n_value = 0;
	expect_refused(&o, "0 values where there are 1 types");
	other_init(&o);
	o.profile.n_sample_type = 0;
	o.sample.n_value = 0;
	expect_refused(&o, "counts no samples");
	other_init(&o);
	o.profile.has_luabpf_format = 1;
	o.profile.luabpf_format = 2;
	expect_refused(&o, "newer luabpf");
	other_init(&o);
	o.profile.string_table = strings + 1;
	o.profile.n_string_table--;
	expect_refused(&o, "not a pprof profile");
}

Test(prof_pprof, deep_stacks_of_few_bytes_are_refused)
{
	struct other o;
	static uint64_t ids[20000];
	static Pprof__Line *lines[20000];

	other_init(&o);
	for (size_t i = 0; i < 20000; i++) {
		ids[i] = 77;
		lines[i] = &o.line;
	}
	o.sample.location_id = ids;
	o.sample.n_location_id = 20000;
	expect_refused(&o, "a stack of more than 16384 frames");
	o.sample.n_location_id = 1;
	o.location.line = lines;
	o.location.n_line = 20000;
	expect_refused(&o, "a stack of more than 16384 frames");
}

Test(prof_pprof, text_is_not_pprof)
{
	struct error err = {0};

	cr_expect_eq(load("this is no profile\n", 19, &err), -EBADMSG);
	cr_expect_str_eq(err.what, "x.pb.gz: not a pprof profile, or a damaged one");
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof's functions and locations to frames: exactly, where luabpf's own fields are there, else by
 * guessing from what pprof_write.c (or another tool) put into pprof's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/cleanup.h"
#include "name.h"
#include "pprof_reader.h"

int reader_no_memory(struct reader *r)
{
	return refuse(r, -ENOMEM, "out of memory");
}

int reader_string(struct reader *r, int64_t index, const char **out)
{
	if (index == 0 && !r->in->n_string_table) {
		*out = "";
		return 0;
	}
	if (index < 0 || (uint64_t)index >= r->in->n_string_table)
		return refuse(r, -EINVAL, "names string %" PRId64 " of %zu", index,
			      r->in->n_string_table);
	*out = r->in->string_table[index];
	return 0;
}

static int32_t line_number(int64_t line)
{
	return line > INT32_MAX ? INT32_MAX : line < -1 ? -1 : (int32_t)line;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The strings of one frame, while it is handed to prof. */
struct strings {
	char *callname, *defname, *chunk, *symbol, *position;
};

static void strings_free(struct strings *s)
{
	free(s->callname);
	free(s->defname);
	free(s->chunk);
	free(s->symbol);
	free(s->position);
}

static int copy_bytes(struct reader *r, bool has, ProtobufCBinaryData from, char **to)
{
	if (!has)
		return 0;
	*to = from.len ? strndup((const char *)from.data, MIN(from.len, MAX_STRING)) : strdup("");
	return *to ? 0 : reader_no_memory(r);
}

static int kind_from(struct reader *r, int32_t kind, enum prof_kind *out)
{
	switch (kind) {
	case PPROF__LUA_FUNCTION__KIND__LUA:
		*out = PROF_LUA;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__C:
		*out = PROF_C;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__BUILTIN:
		*out = PROF_BUILTIN;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__CUT:
		*out = PROF_CUT;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__TAIL:
		*out = PROF_TAIL;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__VM:
		*out = PROF_VM;
		return 0;
	case PPROF__LUA_FUNCTION__KIND__OTHER:
		*out = PROF_OTHER;
		return 0;
	}
	return refuse(r, -EINVAL, "has a function of unknown kind %" PRId32, kind);
}

/* A few bytes can name a long string again and again. */
static int count_bytes(struct reader *r, const struct strings *s)
{
	const char *const all[] = {s->callname, s->defname, s->chunk, s->symbol, s->position};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t len = all[i] ? strlen(all[i]) : 0;

		if (len > r->name_bytes_left)
			return refuse(r, -E2BIG, "has more than %lu MiB of names in its lines",
				      MAX_NAME_BYTES >> 20);
		r->name_bytes_left -= len;
	}
	return 0;
}

static int add_frame(struct reader *r, struct prof_frame *frame, const struct strings *strings,
		     uint32_t *id)
{
	int rc = count_bytes(r, strings);

	if (rc)
		return rc;
	frame->callname = strings->callname;
	frame->defname = strings->defname;
	frame->chunk = strings->chunk;
	frame->symbol = strings->symbol;
	frame->position = strings->position;
	rc = prof_frame_id(r->prof, frame, id);
	return rc == -ENOMEM ? reader_no_memory(r) : rc;
}

/* A function with luabpf's own fields. */
static int own_frame(struct reader *r, const Pprof__Location *location,
		     const Pprof__LuaFunction *lua, int32_t line, uint32_t *id)
{
	__attribute__((cleanup(strings_free))) struct strings strings = {0};
	struct prof_frame frame = {
		.addr = lua->addr,
		.firstline = lua->firstline,
		.line = line,
		.shape = lua->shape,
		.order = lua->order,
		.place = lua->has_place ? lua->place : lua->order,
		.contents = lua->contents,
	};
	int rc;

	if (lua->kind == PPROF__LUA_FUNCTION__KIND__NONE) {
		*id = NO_FRAME;
		return 0;
	}
	rc = kind_from(r, lua->kind, &frame.kind);
	if (!rc && frame.kind == PROF_C)
		frame.addr = location->address;
	if (!rc && location->has_callname)
		rc = copy_bytes(r, true, location->callname, &strings.callname);
	else if (!rc)
		rc = copy_bytes(r, lua->has_callname, lua->callname, &strings.callname);
	if (!rc)
		rc = copy_bytes(r, lua->has_defname, lua->defname, &strings.defname);
	if (!rc)
		rc = copy_bytes(r, lua->has_chunk, lua->chunk, &strings.chunk);
	if (!rc)
		rc = copy_bytes(r, lua->has_symbol, lua->symbol, &strings.symbol);
	if (!rc)
		rc = copy_bytes(r, lua->has_position, lua->position, &strings.position);
	return rc ? rc : add_frame(r, &frame, &strings, id);
}

/* Undoes put_filename() of pprof_write.c, as far as a readable form allows. */
static char *chunk_from(const char *file, int32_t *firstline)
{
	static const char string[] = "[string \"", builtin[] = "[builtin:";
	__text struct text chunk = {0};
	size_t len = strlen(file);

	if (!strncmp(file, string, sizeof(string) - 1) && len >= sizeof(string) + 1) {
		text_put(&chunk, file + sizeof(string) - 1, len - (sizeof(string) - 1) - 2);
	} else if (!strncmp(file, builtin, sizeof(builtin) - 1) && len >= sizeof(builtin)) {
		text_put(&chunk, file + sizeof(builtin) - 1, len - (sizeof(builtin) - 1) - 1);
		*firstline = -1;
	} else {
		if (*file != '=' && *file != '@')
			text_putc(&chunk, '@');
		text_puts(&chunk, file);
	}
	return text_err(&chunk) ? NULL : TAKE_PTR(chunk.data);
}

static void pseudo_from(const char *name, enum prof_kind *kind)
{
	if (!strcmp(name, "[cut]"))
		*kind = PROF_CUT;
	else if (!strcmp(name, "(...tail calls...)"))
		*kind = PROF_TAIL;
	else if (!strcmp(name, NAME_VM))
		*kind = PROF_VM;
	else if (!strcmp(name, NAME_OTHER))
		*kind = PROF_OTHER;
}

/* A function as pprof knows it: with a file it is taken for Lua, else for C. */
static int guessed_frame(struct reader *r, const Pprof__Function *function, int32_t line,
			 uint64_t addr, uint32_t *id)
{
	__attribute__((cleanup(strings_free))) struct strings strings = {0};
	struct prof_frame frame = {.addr = addr, .line = line};
	const char *name, *system, *file;
	int rc;

	rc = reader_string(r, function->name, &name);
	if (!rc)
		rc = reader_string(r, function->system_name, &system);
	if (!rc)
		rc = reader_string(r, function->filename, &file);
	if (rc)
		return rc;
	frame.kind = *file ? PROF_LUA : PROF_C;
	frame.firstline = line_number(function->start_line);
	if (frame.firstline < 0)
		frame.firstline = 0;
	if (r->ours && !strcmp(name, "[no frame]")) {
		*id = NO_FRAME;
		return 0;
	}
	if (r->ours && !*file)
		pseudo_from(name, &frame.kind);
	if (*name && (frame.kind == PROF_LUA || frame.kind == PROF_C)) {
		/* system_name is jit.p's name in luabpf's files, and a mangled one elsewhere. */
		strings.callname = strdup(r->ours && *system ? system : name);
		if (!strings.callname)
			return reader_no_memory(r);
	}
	if (*name && frame.kind == PROF_LUA) {
		strings.defname = strdup(name);
		strings.chunk = chunk_from(file, &frame.firstline);
		if (!strings.defname || !strings.chunk)
			return reader_no_memory(r);
	} else if (*name && frame.kind == PROF_C) {
		strings.symbol = strdup(name);
		if (!strings.symbol)
			return reader_no_memory(r);
	}
	return add_frame(r, &frame, &strings, id);
}

static int frame_of(struct reader *r, const Pprof__Location *location, const Pprof__Line *line,
		    uint32_t *id)
{
	int32_t number = line_number(line->line);
	struct entry *entry;

	if (location->has_lua_line)
		number = location->lua_line;
	HASH_FIND(hh, r->functions, &line->function_id, sizeof(line->function_id), entry);
	if (!entry)
		return refuse(r, -EINVAL,
			      "location %" PRIu64 " names function %" PRIu64 ", which is not there",
			      location->id, line->function_id);
	if (entry->function->lua)
		return own_frame(r, location, entry->function->lua, number, id);
	return guessed_frame(r, entry->function, number, location->address, id);
}

/* A location without a name: C code at an address. */
static int bare_frame(struct reader *r, const Pprof__Location *location, uint32_t *id)
{
	struct prof_frame frame = {.kind = PROF_C, .addr = location->address, .line = -1};
	struct strings none = {0};

	return add_frame(r, &frame, &none, id);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int add_entry(struct reader *r, struct entry **table, const char *what, uint64_t id,
		     struct entry **out)
{
	struct entry *entry;

	if (!id)
		return refuse(r, -EINVAL, "has a %s with id 0", what);
	HASH_FIND(hh, *table, &id, sizeof(id), entry);
	if (entry)
		return refuse(r, -EINVAL, "has two %ss with id %" PRIu64, what, id);
	entry = &r->pool[r->npool++];
	entry->id = id;
	HASH_ADD(hh, *table, id, sizeof(id), entry);
	if (!entry->hh.tbl)
		return reader_no_memory(r);
	*out = entry;
	return 0;
}

static int read_functions(struct reader *r)
{
	for (size_t i = 0; i < r->in->n_function; i++) {
		const Pprof__Function *function = r->in->function[i];
		struct entry *entry;
		int rc = add_entry(r, &r->functions, "function", function->id, &entry);

		if (rc)
			return rc;
		entry->function = function;
	}
	return 0;
}

static int read_location(struct reader *r, const Pprof__Location *location)
{
	struct entry *entry;
	int rc = add_entry(r, &r->locations, "location", location->id, &entry);

	if (rc)
		return rc;
	entry->frames = calloc(location->n_line + 1, sizeof(*entry->frames));
	if (!entry->frames)
		return reader_no_memory(r);
	if (!location->n_line)
		rc = bare_frame(r, location, &entry->frames[entry->nframes++]);
	for (size_t i = 0; i < location->n_line && !rc; i++) {
		rc = frame_of(r, location, location->line[i], &entry->frames[entry->nframes]);
		if (!rc && entry->frames[entry->nframes] != NO_FRAME)
			entry->nframes++;
	}
	if (!rc && entry->nframes == 1 && entry->id <= r->in->n_location)
		r->frame_of[entry->id - 1] = entry->frames[0];
	return rc;
}

int reader_tables(struct reader *r)
{
	int rc;

	r->pool = calloc(r->in->n_function + r->in->n_location + 1, sizeof(*r->pool));
	r->frame_of = malloc((r->in->n_location + 1) * sizeof(*r->frame_of));
	if (!r->pool || !r->frame_of)
		return reader_no_memory(r);
	memset(r->frame_of, 0xff, r->in->n_location * sizeof(*r->frame_of)); /* NO_FRAME */
	rc = read_functions(r);
	for (size_t i = 0; i < r->in->n_location && !rc; i++)
		rc = read_location(r, r->in->location[i]);
	return rc;
}

const struct entry *reader_location(const struct reader *r, uint64_t id)
{
	struct entry *entry;

	HASH_FIND(hh, r->locations, &id, sizeof(id), entry);
	return entry;
}

void reader_free_tables(struct reader *r)
{
	HASH_CLEAR(hh, r->functions);
	HASH_CLEAR(hh, r->locations);
	for (size_t i = 0; i < r->npool; i++)
		free(r->pool[i].frames);
	free(r->pool);
	free(r->frame_of);
}

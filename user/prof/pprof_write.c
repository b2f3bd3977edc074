// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two messages that follow one another are read as one whose repeated fields are joined. So each
 * part is packed as a small Profile of its own and goes through deflate at once: what is in memory
 * does not grow with the profile, but for the string table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "function.h"
#include "name.h"
#include "pprof.h"
#include "pprof_stream.h"

static int64_t scratch_index(struct writer *w)
{
	if (text_err(&w->text)) {
		stream_fail(w, text_err(&w->text));
		return 0;
	}
	return stream_readable(w, text_str(&w->text));
}

static int64_t clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : clamp(product);
}

/* ---- functions and locations ----------------------------------------------------------------- */

static ProtobufCBinaryData bytes_of(const char *str)
{
	return (ProtobufCBinaryData){.len = str ? strlen(str) : 0, .data = (uint8_t *)str};
}

static int32_t kind_of(const struct prof_frame *frame)
{
	switch (frame->kind) {
	case PROF_LUA:
		return PPROF__LUA_FUNCTION__KIND__LUA;
	case PROF_C:
		return PPROF__LUA_FUNCTION__KIND__C;
	case PROF_BUILTIN:
		return PPROF__LUA_FUNCTION__KIND__BUILTIN;
	case PROF_TAIL:
		return PPROF__LUA_FUNCTION__KIND__TAIL;
	case PROF_VM:
		return PPROF__LUA_FUNCTION__KIND__VM;
	case PROF_OTHER:
		return PPROF__LUA_FUNCTION__KIND__OTHER;
	case PROF_CUT:
		break;
	}
	return PPROF__LUA_FUNCTION__KIND__CUT;
}

/*
 * The file of a Lua function. A path is shown as it is; a chunk that is no path differs from every
 * path in how it begins: "=name", [string "source"], [builtin:library]; a path that begins like one
 * of them keeps its @.
 */
static void put_filename(struct text *out, const struct prof_frame *frame)
{
	const char *chunk = frame->chunk ? frame->chunk : "=?";

	if (frame->kind != PROF_LUA)
		return;
	if (frame->firstline == -1)
		text_printf(out, "[builtin:%s]", chunk);
	else if (*chunk == '@' && !strchr("@=[", chunk[1])) /* an empty path keeps its @, too */
		text_puts(out, chunk + 1);
	else if (*chunk == '@' || *chunk == '=')
		text_puts(out, chunk);
	else
		text_printf(out, "[string \"%s\"]", chunk);
}

static void fill_lua(Pprof__LuaFunction *lua, const struct prof_frame *frame)
{
	lua->has_kind = true;
	lua->kind = kind_of(frame);
	lua->has_defname = frame->defname != NULL;
	lua->defname = bytes_of(frame->defname);
	lua->has_chunk = frame->chunk != NULL;
	lua->chunk = bytes_of(frame->chunk);
	lua->has_symbol = frame->symbol != NULL;
	lua->symbol = bytes_of(frame->symbol);
	lua->has_position = frame->position != NULL;
	lua->position = bytes_of(frame->position);
	lua->has_addr = frame->addr != 0;
	lua->addr = frame->addr;
	lua->has_shape = frame->shape != 0;
	lua->shape = frame->shape;
	lua->has_order = frame->order != 0;
	lua->order = frame->order;
	lua->has_place = frame->place != frame->order;
	lua->place = frame->place;
	lua->has_contents = frame->contents != 0;
	lua->contents = frame->contents;
	lua->has_firstline = true;
	lua->firstline = frame->firstline;
}

static void put_function(struct writer *w, uint32_t number, uint32_t any_frame)
{
	const struct prof_frame *frame = functions_frame(w->functions, number);
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	Pprof__LuaFunction lua = PPROF__LUA_FUNCTION__INIT;

	fill_lua(&lua, frame);
	function.has_id = true;
	function.id = number + UINT64_C(1);
	text_clear(&w->text);
	functions_put_stable(w->functions, &w->text, number);
	function.has_name = true;
	function.name = scratch_index(w);
	text_clear(&w->text);
	functions_put_jitp(w->functions, &w->text, any_frame, 'f', 0);
	function.has_system_name = true;
	function.system_name = scratch_index(w);
	text_clear(&w->text);
	put_filename(&w->text, frame);
	function.has_filename = true;
	function.filename = scratch_index(w);
	function.has_start_line = frame->firstline > 0;
	function.start_line = frame->firstline;
	function.lua = &lua;
	part.n_function = 1;
	part.function = (Pprof__Function *[]){&function};
	stream_put(w, &part);
}

static void put_location(struct writer *w, const struct prof_frame *frame, uint64_t id,
			 uint64_t function)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Line line = PPROF__LINE__INIT;
	int32_t shown = frame->line >= 0 ? frame->line : frame->firstline;

	if (shown < 0)
		shown = 0;
	line.has_function_id = true;
	line.function_id = function;
	line.has_line = shown > 0;
	line.line = shown;
	location.has_id = true;
	location.id = id;
	location.has_mapping_id = true;
	location.mapping_id = 1;
	location.has_address = frame->kind == PROF_C && frame->addr;
	location.address = frame->addr;
	location.n_line = 1;
	location.line = (Pprof__Line *[]){&line};
	location.has_lua_line = frame->line != shown;
	location.lua_line = frame->line;
	location.has_callname = frame->callname != NULL;
	location.callname = bytes_of(frame->callname);
	part.n_location = 1;
	part.location = (Pprof__Location *[]){&location};
	stream_put(w, &part);
}

/* pprof tools do not show a sample without a location, so an empty stack gets one that a load
 * drops. */
static void put_empty_stack(struct writer *w, uint64_t id)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	Pprof__LuaFunction lua = PPROF__LUA_FUNCTION__INIT;
	struct prof_frame none = {.kind = PROF_CUT};

	lua.has_kind = true;
	lua.kind = PPROF__LUA_FUNCTION__KIND__NONE;
	function.has_id = true;
	function.id = functions_count(w->functions) + 1;
	function.has_name = true;
	function.name = stream_string(w, "[no frame]");
	function.lua = &lua;
	part.n_function = 1;
	part.function = (Pprof__Function *[]){&function};
	stream_put(w, &part);
	put_location(w, &none, id, function.id);
}

/* A function is written before the first location that names it. */
static void put_locations(struct writer *w)
{
	size_t n = prof_nframes(w->prof);
	__free bool *written = calloc(functions_count(w->functions) + 1, sizeof(*written));

	if (!written)
		stream_fail(w, -ENOMEM);
	for (uint32_t id = 0; id < n && !w->err; id++) {
		uint32_t number = functions_of(w->functions, id);

		if (!written[number])
			put_function(w, number, id);
		written[number] = true;
		put_location(w, prof_frame(w->prof, id), id + UINT64_C(1), number + UINT64_C(1));
	}
	if (!w->err)
		put_empty_stack(w, n + 1);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void fill_label(struct writer *w, Pprof__Label *label, const char *key, const char *value)
{
	label->has_key = true;
	label->key = stream_string(w, key);
	label->has_str = true;
	label->str = stream_readable(w, value);
}

/* The strings of all origins, each once. */
static void put_origins(struct writer *w)
{
	size_t n = prof_norigins(w->prof);

	w->origins = calloc(n, sizeof(*w->origins));
	if (!w->origins) {
		stream_fail(w, -ENOMEM);
		return;
	}
	for (size_t k = 0; k < PROF_ORIGIN_STRINGS && n > 1; k++)
		w->origin_keys[k] = stream_string(w, prof_origin_labels[k]);
	for (size_t i = 0; i < n; i++) {
		const struct prof_origin *o = prof_origin(w->prof, (uint32_t)i);

		for (size_t k = 0; k < PROF_ORIGIN_STRINGS; k++)
			w->origins[i].value[k] = stream_readable(w, o->string[k]);
	}
}

static size_t fill_origin(struct writer *w, uint32_t origin, Pprof__Label *out)
{
	const struct origin_labels *labels = &w->origins[origin];
	size_t n = 0;

	for (size_t k = 0; k < PROF_ORIGIN_STRINGS; k++) {
		if (!labels->value[k])
			continue;
		out[n].has_key = out[n].has_str = true;
		out[n].key = w->origin_keys[k];
		out[n++].str = labels->value[k];
	}
	return n;
}

/* pid and tid are text: tools would give a number a unit and scale it. */
static size_t fill_labels(struct writer *w, const struct prof_labels *labels, Pprof__Label *out)
{
	const char *state = name_vmstate(labels->vmstate);
	char buf[32];
	size_t n = 0;

	if (labels->vmstate) {
		snprintf(buf, sizeof(buf), "%c", labels->vmstate);
		fill_label(w, &out[n], "vmstate", state ? state : buf);
		out[n].has_raw = !state;
		out[n++].raw = (ProtobufCBinaryData){.len = 1, .data = (uint8_t *)&labels->vmstate};
	}
	if (labels->cause)
		fill_label(w, &out[n++], "cause", name_cause(labels->cause));
	if (labels->trace) {
		snprintf(buf, sizeof(buf), "%" PRIu32, labels->trace);
		fill_label(w, &out[n++], "trace", buf);
	}
	if (labels->snapshot_line)
		fill_label(w, &out[n++], PROF_LINE, PROF_LINE_OF_SNAPSHOT);
	if (labels->pid) {
		snprintf(buf, sizeof(buf), "%" PRIu32, labels->pid);
		fill_label(w, &out[n++], "pid", buf);
	}
	if (labels->tid) {
		snprintf(buf, sizeof(buf), "%" PRIu32, labels->tid);
		fill_label(w, &out[n++], "tid", buf);
	}
	if (*labels->comm) {
		__text struct text clean = {0};

		text_put_utf8(&clean, labels->comm, strlen(labels->comm));
		fill_label(w, &out[n], "comm", labels->comm);
		out[n].has_raw = strcmp(text_str(&clean), labels->comm) != 0;
		out[n++].raw = bytes_of(labels->comm);
	}
	if (labels->coroutine) {
		name_coroutine(labels->coroutine, buf, sizeof(buf));
		fill_label(w, &out[n++], "coroutine", buf);
	}
	if (labels->zone)
		fill_label(w, &out[n++], "zone", labels->zone);
	return n + fill_origin(w, labels->origin, out + n);
}

#define MOST_LABELS (9 + PROF_ORIGIN_STRINGS)

static void put_row(struct writer *w, const struct prof_row *row)
{
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	Pprof__Label labels[MOST_LABELS], *pointers[MOST_LABELS];
	__free uint64_t *ids = calloc(row->nframes + 1, sizeof(*ids));
	int64_t values[2] = {clamp(row->count),
			     multiply(row->count, prof_meta_of(w->prof)->period_ns)};

	if (!ids) {
		stream_fail(w, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < row->nframes; i++)
		ids[i] = row->frames[i] + UINT64_C(1);
	if (!row->nframes)
		ids[0] = prof_nframes(w->prof) + 1;
	sample.n_location_id = row->nframes ? row->nframes : 1;
	sample.location_id = ids;
	sample.n_value = 2;
	sample.value = values;
	for (size_t i = 0; i < MOST_LABELS; i++) {
		pprof__label__init(&labels[i]);
		pointers[i] = &labels[i];
	}
	sample.n_label = fill_labels(w, &row->labels, labels);
	sample.label = pointers;
	stream_sample(w, &sample);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void fill_type(struct writer *w, Pprof__ValueType *type, const char *name, const char *unit)
{
	pprof__value_type__init(type);
	type->has_type = true;
	type->type = stream_string(w, name);
	type->has_unit = true;
	type->unit = stream_string(w, unit);
}

static void put_head(struct writer *w)
{
	const struct prof_meta *meta = prof_meta_of(w->prof);
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT;
	Pprof__ValueType count, cpu;

	stream_string(w, ""); /* must be the first */
	fill_type(w, &count, "samples", "count");
	fill_type(w, &cpu, "cpu", "nanoseconds");
	part.n_sample_type = 2;
	part.sample_type = (Pprof__ValueType *[]){&count, &cpu};
	part.period_type = &cpu;
	part.has_default_sample_type = true;
	part.default_sample_type = meta->period_ns ? cpu.type : count.type;
	part.has_period = true;
	part.period = clamp(meta->period_ns);
	part.has_time_nanos = true;
	part.time_nanos = clamp(meta->time_ns);
	part.has_duration_nanos = true;
	part.duration_nanos = clamp(meta->duration_ns);
	part.has_luabpf_format = true;
	part.luabpf_format = PPROF_FORMAT;
	part.has_target_uid = meta->has_uid;
	part.target_uid = meta->uid;
	/* Tools look for symbols in a mapping that does not say that it has them. */
	mapping.has_id = true;
	mapping.id = 1;
	mapping.has_filename = true;
	mapping.filename = stream_string(w, "[lua]");
	mapping.has_has_functions = mapping.has_functions = true;
	mapping.has_has_filenames = mapping.has_filenames = true;
	mapping.has_has_line_numbers = mapping.has_line_numbers = true;
	part.n_mapping = 1;
	part.mapping = (Pprof__Mapping *[]){&mapping};
	stream_put(w, &part);
}

static void put_comment(struct writer *w, const char *comment)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t index = stream_readable(w, comment);

	part.n_comment = 1;
	part.comment = &index;
	stream_put(w, &part);
}

/* A reason is one of luabpf's own keys; should a byte need escaping, the readable form can be
 * undone. */
static void put_losses(struct writer *w)
{
	for (size_t i = 0; i < prof_nlosses(w->prof); i++) {
		struct prof_loss loss;

		prof_loss(w->prof, i, &loss);
		text_clear(&w->text);
		text_printf(&w->text, "luabpf: %s %" PRIu64 " samples: ",
			    prof_is_outside(loss.reason) ? "left out" : "lost", loss.count);
		for (const char *p = loss.reason; *p; p++) {
			if (*p == '\\')
				text_puts(&w->text, "\\x5c");
			else
				text_putc(&w->text, *p);
		}
		if (text_err(&w->text))
			stream_fail(w, text_err(&w->text));
		put_comment(w, text_str(&w->text));
	}
}

static void put_profile(struct writer *w)
{
	put_head(w);
	put_comment(w, "luabpf: CPU time of Lua code, seen from outside the process");
	put_losses(w);
	put_locations(w);
	put_origins(w);
	for (size_t i = 0; i < prof_nrows(w->prof) && !w->err; i++) {
		struct prof_row row;

		prof_row(w->prof, i, &row);
		put_row(w, &row);
	}
}

int pprof_write(const struct prof *prof, FILE *out)
{
	struct functions *functions __cleanup(functions_free) = NULL;
	struct writer w = {.prof = prof};
	int err = functions_new(prof, &functions);

	if (!err)
		err = stream_open(&w, out);
	if (err)
		return err;
	w.functions = functions;
	put_profile(&w);
	return stream_close(&w);
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof to struct prof. Each index is checked where it is used; the work is bounded by the input's
 * size and by MAX_DEPTH, MAX_FRAMES, MAX_STRING and MAX_NAME_BYTES, as a few bytes can name a
 * location of many inlined lines, or a long string, again and again. prof.c bounds the
 * memory of the profile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "name.h"
#include "pprof.h"
#include "pprof_reader.h"

#define MAX_DEPTH 16384		 /* frames of one stack */
#define MAX_FRAMES (256UL << 20) /* frames of all stacks together */
#define MAX_LOSSES 1000
#define MAX_LABELS 1000 /* of one sample */
#define MAX_FILE (256UL << 20)
#define COMMENT_HEAD "luabpf: "
#define COMMENT_LOST "luabpf: lost "
#define COMMENT_LEFT_OUT "luabpf: left out "
#define COMMENT_REASON " samples: "

/* ---- samples --------------------------------------------------------------------------------- */

static int read_stack(struct reader *r, const Pprof__Sample *sample, size_t *n)
{
	size_t depth = 0;

	for (size_t i = 0; i < sample->n_location_id; i++) {
		uint64_t id = sample->location_id[i];
		uint32_t frame = reader_frame(r, id);
		const struct entry *entry;

		if (frame != NO_FRAME && depth < MAX_DEPTH) {
			r->stack[depth++] = frame;
			continue;
		}
		entry = reader_location(r, id);
		if (!entry)
			return refuse(r, -EINVAL,
				      "a sample names location %" PRIu64 ", which is not there",
				      id);
		if (entry->nframes > MAX_DEPTH - depth)
			return refuse(r, -EINVAL, "has a stack of more than %d frames", MAX_DEPTH);
		memcpy(r->stack + depth, entry->frames, entry->nframes * sizeof(*r->stack));
		depth += entry->nframes;
	}
	if (depth > r->frames_left)
		return refuse(r, -E2BIG, "has more than %lu frames in all its stacks", MAX_FRAMES);
	r->frames_left -= depth;
	*n = depth;
	return 0;
}

static uint32_t number_of(const Pprof__Label *label, const char *value)
{
	unsigned long long number = label->num < 0 ? 0 : (unsigned long long)label->num;

	if (label->str) /* a number, not thousands of zeros for each of many labels */
		number = strnlen(value, 21) > 20 ? 0 : strtoull(value, NULL, 10);
	return number > UINT32_MAX ? 0 : (uint32_t)number;
}

/* The label's bytes; *raw keeps them when they are not a string of the table. */
static int label_value(struct reader *r, const Pprof__Label *label, struct text *raw,
		       const char **value)
{
	int rc;

	if (!label->has_raw)
		return reader_string(r, label->str, value);
	text_clear(raw);
	if (label->raw.len)
		text_put(raw, (const char *)label->raw.data, label->raw.len);
	rc = text_err(raw);
	if (!rc)
		*value = text_str(raw);
	return rc ? reader_no_memory(r) : 0;
}

/* Returns the member that holds this label; NULL if the label is not of an origin. */
static const char **origin_member(struct prof_origin *o, const char *key)
{
	for (size_t i = 0; i < PROF_ORIGIN_STRINGS; i++)
		if (!strcmp(key, prof_origin_labels[i]))
			return &o->string[i];
	return NULL;
}

static int read_label(struct reader *r, const Pprof__Label *label, struct prof_labels *out,
		      struct prof_origin *origin)
{
	const char *key = "", *value = "";
	const char **member;
	bool is_comm;
	int rc = reader_string(r, label->key, &key);

	member = origin_member(origin, key);
	if (!rc && member)
		return reader_string(r, label->str, member);
	is_comm = !strcmp(key, "comm");
	if (!rc)
		rc = label_value(r, label, is_comm ? &r->comm : &r->scratch, &value);
	if (rc)
		return rc;
	if (is_comm)
		out->comm = value;
	else if (!strcmp(key, "vmstate"))
		out->vmstate = name_vmstate_letter(value) ?: (*value && !value[1] ? *value : '\0');
	else if (!strcmp(key, "cause"))
		out->cause = (uint8_t)name_cause_of(value);
	else if (!strcmp(key, "trace"))
		out->trace = number_of(label, value);
	else if (!strcmp(key, PROF_LINE))
		out->snapshot_line = !strcmp(value, PROF_LINE_OF_SNAPSHOT);
	else if (!strcmp(key, "pid"))
		out->pid = number_of(label, value);
	else if (!strcmp(key, "tid"))
		out->tid = number_of(label, value);
	else if (!strcmp(key, "coroutine"))
		out->coroutine = name_coroutine_of(value);
	else if (!strcmp(key, "zone"))
		return reader_string(r, label->str, &out->zone);
	return 0;
}

/* Most samples have the origin of another: strings of the table are equal when their pointers are. */
static int read_origin(struct reader *r, const struct prof_origin *origin, uint32_t *id)
{
	struct known_origin *known =
		&r->origins[hash_bytes(origin, sizeof(*origin)) & (ORIGINS_KNOWN - 1)];
	int rc;

	if (memcmp(&known->strings, origin, sizeof(*origin)) != 0) {
		rc = prof_origin_id(r->prof, origin, &known->id);
		if (rc)
			return reader_no_memory(r);
		known->strings = *origin;
	}
	*id = known->id;
	return 0;
}

static int read_labels(struct reader *r, const Pprof__Sample *sample, struct prof_labels *out)
{
	struct prof_origin origin = {0};
	int rc = 0;

	if (sample->n_label > MAX_LABELS)
		return refuse(r, -EINVAL, "has a sample with more than %d labels", MAX_LABELS);
	for (size_t i = 0; i < sample->n_label && !rc; i++)
		rc = read_label(r, sample->label[i], out, &origin);
	return rc ? rc : read_origin(r, &origin, &out->origin);
}

static int read_sample(struct reader *r, const Pprof__Sample *sample)
{
	struct prof_labels labels = {0};
	uint64_t count;
	size_t n = 0;
	int rc;

	if (sample->n_value != r->in->n_sample_type)
		return refuse(r, -EINVAL, "a sample has %zu values where there are %zu types",
			      sample->n_value, r->in->n_sample_type);
	if (sample->value[r->value] < 0)
		return refuse(r, -EINVAL, "has negative counts: it is a difference of profiles");
	/* At least a part of a sample was there when the value is not 0. */
	count = sample->value[r->value] / r->divisor + (sample->value[r->value] % r->divisor != 0);
	if (!count)
		return 0;
	rc = read_labels(r, sample, &labels);
	if (!rc)
		rc = read_stack(r, sample, &n);
	if (rc)
		return rc;
	rc = prof_add(r->prof, r->stack, n, &labels, count);
	return rc == -ENOMEM ? reader_no_memory(r) : rc;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int type_is(struct reader *r, const Pprof__ValueType *type, const char *name,
		   const char *unit, bool *is)
{
	const char *t = "", *u = "";
	int rc = reader_string(r, type->type, &t);

	if (!rc)
		rc = reader_string(r, type->unit, &u);
	if (!rc)
		*is = (!name || !strcmp(t, name)) && !strcmp(u, unit);
	return rc;
}

/* The index of the first value of that type; n_sample_type if no value has it. */
static int find_type(struct reader *r, const char *name, const char *unit, size_t *out)
{
	size_t i, n = r->in->n_sample_type;

	for (i = 0; i < n; i++) {
		bool is;
		int rc = type_is(r, r->in->sample_type[i], name, unit, &is);

		if (rc)
			return rc;
		if (is)
			break;
	}
	*out = i;
	return 0;
}

/* Which value counts samples: samples/count, any other count, else nanoseconds by the period. */
static int choose_value(struct reader *r)
{
	size_t n = r->in->n_sample_type;
	int rc;

	r->divisor = 1;
	rc = find_type(r, "samples", "count", &r->value);
	if (!rc && r->value == n)
		rc = find_type(r, NULL, "count", &r->value);
	if (rc || r->value < n)
		return rc;
	r->divisor = prof_meta(r->prof)->period_ns;
	rc = find_type(r, NULL, "nanoseconds", &r->value);
	if (rc || (r->value < n && r->divisor))
		return rc;
	return refuse(r, -EINVAL, "counts no samples: none of its %zu value types is a count", n);
}

static int read_meta(struct reader *r)
{
	struct prof_meta *meta = prof_meta(r->prof);
	bool is = false;
	int rc;

	if (r->in->period_type && r->in->period > 0) {
		rc = type_is(r, r->in->period_type, NULL, "nanoseconds", &is);
		if (rc)
			return rc;
	}
	meta->period_ns = is ? r->in->period : 0;
	meta->time_ns = r->in->time_nanos > 0 ? r->in->time_nanos : 0;
	meta->has_uid = r->in->has_target_uid && r->in->target_uid != UINT32_MAX;
	meta->uid = r->in->target_uid;
	meta->duration_ns = r->in->duration_nanos > 0 ? r->in->duration_nanos : 0;
	return 0;
}

/* Undoes \xNN. */
static void put_unescaped(struct text *out, const char *s)
{
	while (*s) {
		unsigned int byte;

		if (s[0] == '\\' && s[1] == 'x' && s[2] && s[3] &&
		    sscanf(s + 2, "%2x", &byte) == 1 && byte) {
			text_putc(out, (char)byte);
			s += 4;
		} else {
			text_putc(out, *s++);
		}
	}
}

static int read_comment(struct reader *r, const char *comment)
{
	__text struct text reason = {0};
	unsigned long long count;
	char *end;
	int rc;

	if (!strncmp(comment, COMMENT_LOST, strlen(COMMENT_LOST)))
		comment += strlen(COMMENT_LOST);
	else if (!strncmp(comment, COMMENT_LEFT_OUT, strlen(COMMENT_LEFT_OUT)))
		comment += strlen(COMMENT_LEFT_OUT);
	else
		return 0;
	count = strtoull(comment, &end, 10);
	if (strncmp(end, COMMENT_REASON, strlen(COMMENT_REASON)))
		return 0;
	if (prof_nlosses(r->prof) >= MAX_LOSSES)
		return refuse(r, -EINVAL, "has more than %d reasons of loss", MAX_LOSSES);
	put_unescaped(&reason, end + strlen(COMMENT_REASON));
	rc = text_err(&reason);
	if (!rc)
		rc = prof_lose(r->prof, text_str(&reason), count);
	return rc ? reader_no_memory(r) : 0;
}

static int read_comments(struct reader *r)
{
	for (size_t i = 0; i < r->in->n_comment; i++) {
		const char *comment;
		int rc = reader_string(r, r->in->comment[i], &comment);

		if (rc)
			return rc;
		if (!strncmp(comment, COMMENT_HEAD, strlen(COMMENT_HEAD)))
			r->ours = true;
		rc = read_comment(r, comment);
		if (rc)
			return rc;
	}
	return 0;
}

static int read_profile(struct reader *r)
{
	int rc;

	if (r->in->n_string_table && *r->in->string_table[0])
		return refuse(r, -EBADMSG, "not a pprof profile: its first string is not empty");
	if (r->in->luabpf_format > PPROF_FORMAT)
		return refuse(r, -EINVAL, "was written by a newer luabpf (format %" PRId64 ")",
			      r->in->luabpf_format);
	rc = read_meta(r);
	if (!rc)
		rc = choose_value(r);
	if (!rc)
		rc = read_comments(r);
	if (!rc)
		rc = reader_tables(r);
	for (size_t i = 0; i < r->in->n_sample && !rc; i++) {
		Pprof__Sample *sample;

		rc = unpack_sample(&r->unpacked, i, r->name, &sample, r->err);
		if (!rc)
			rc = read_sample(r, sample);
	}
	return rc;
}

static void reader_free(struct reader *r)
{
	reader_free_tables(r);
	unpack_free(&r->unpacked);
	free(r->stack);
	text_free(&r->comm);
	text_free(&r->scratch);
	prof_free(&r->prof);
}

static int unpack(struct reader *r, const void *buf, size_t len)
{
	int rc = unpack_profile(buf, len, r->name, &r->unpacked, r->err);
	Pprof__Profile *profile = r->unpacked.profile;

	if (rc)
		return rc;
	for (size_t i = 0; i < profile->n_string_table; i++) {
		if (strnlen(profile->string_table[i], MAX_STRING + 1) > MAX_STRING)
			profile->string_table[i][MAX_STRING] = '\0';
	}
	r->in = profile;
	return 0;
}

int pprof_read(const void *buf, size_t len, const char *name, struct prof **out, struct error *err)
{
	__attribute__((cleanup(reader_free))) struct reader r = {
		.name = name,
		.err = err,
		.frames_left = MAX_FRAMES,
		.name_bytes_left = MAX_NAME_BYTES,
	};
	int rc = unpack(&r, buf, len);

	if (rc)
		return rc;
	r.stack = calloc(MAX_DEPTH, sizeof(*r.stack));
	if (!r.stack || prof_new(&r.prof))
		return reader_no_memory(&r);
	rc = read_profile(&r);
	if (rc)
		return rc;
	*out = TAKE_PTR(r.prof);
	return 0;
}

int pprof_read_file(FILE *in, const char *name, struct prof **out, struct error *err)
{
	__text struct text bytes = {0};
	char buf[65536];
	size_t n;

	do {
		errno = 0;
		n = fread(buf, 1, sizeof(buf), in);
		text_put(&bytes, buf, n);
		if (text_err(&bytes))
			return error_set(err, -ENOMEM, "%s: out of memory", name);
		if (bytes.len > MAX_FILE)
			return error_set(err, -E2BIG, "%s: larger than %lu MiB", name,
					 MAX_FILE >> 20);
	} while (n);
	if (ferror(in)) {
		int rc = errno ? -errno : -EIO;

		return error_set(err, rc, "%s: cannot be read: %s", name, strerror(-rc));
	}
	return pprof_read(bytes.data ? bytes.data : "", bytes.len, name, out, err);
}

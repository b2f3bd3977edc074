// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/hash_index.h"
#include "lines.h"
#include "program.h"

#define SOURCES_MAX 65536
#define NAME_MAX_BYTES 4096

struct program_index {
	struct hash_index sources, functions;
};

int program_new(struct program **out)
{
	struct program *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->index = calloc(1, sizeof(*p->index));
	if (!p->index) {
		free(p);
		return -ENOMEM;
	}
	p->state_lines_left = p->lines_left = LINES_KEPT_MAX;
	*out = p;
	return 0;
}

void program_free(struct program **program)
{
	struct program *p = *program;

	if (!p)
		return;
	for (size_t i = 0; i < p->nsources; i++) {
		free(p->sources[i].name);
		free(p->sources[i].path);
		free(p->sources[i].totals.at);
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		free(p->functions[i].name);
		free(p->functions[i].lines);
		free(p->functions[i].stats.lines.at);
	}
	hash_index_free(&p->index->sources);
	hash_index_free(&p->index->functions);
	free(p->sources);
	free(p->functions);
	free(p->index);
	free(p);
	*program = NULL;
}

int program_source(struct program *p, const char *name, size_t len, uint32_t *out)
{
	uint32_t hash, id;
	struct program_source *added;
	size_t at;
	int ret;

	if (len > NAME_MAX_BYTES)
		len = NAME_MAX_BYTES;
	len = strnlen(name, len);
	hash = hash_bytes(name, len);
	at = hash;
	while (hash_index_next(&p->index->sources, hash, &at, &id)) {
		if (strlen(p->sources[id].name) == len && !memcmp(p->sources[id].name, name, len)) {
			*out = id;
			return 0;
		}
	}
	if (p->nsources == SOURCES_MAX)
		return -ENOSPC;
	ret = array_grow(&p->sources, p->nsources, sizeof(*p->sources));
	if (ret)
		return ret;
	added = &p->sources[p->nsources];
	*added = (struct program_source){.name = strndup(name, len)};
	if (!added->name)
		return -ENOMEM;
	ret = hash_index_add(&p->index->sources, hash, p->nsources);
	if (ret) {
		free(added->name);
		return ret;
	}
	*out = p->nsources++;
	return 0;
}

static bool is_c(const struct program_function *f)
{
	return f->role != TRACE_ROLE_LUA;
}

static bool is_like(const struct program_function *a, const struct program_function *b)
{
	return is_c(a) == is_c(b) && a->source == b->source && a->first == b->first &&
	       a->last == b->last && a->code == b->code &&
	       (!is_c(a) || !strcmp(a->name, b->name ?: ""));
}

static uint32_t hash_of(const struct program_function *f)
{
	const struct {
		uint64_t code;
		uint32_t source;
		int32_t first, last;
		uint32_t name;
	} key = {f->code, f->source, f->first, f->last,
		 is_c(f) && f->name ? hash_bytes(f->name, strlen(f->name)) : 0};

	return hash_bytes(&key, sizeof(key));
}

static int set_name(struct program_function *f, const char *from, size_t len)
{
	char *name = strndup(from, len);

	if (!name)
		return -ENOMEM;
	free(f->name);
	f->name = name;
	return 0;
}

int program_name(struct program *p, uint32_t function, const char *name, size_t len)
{
	return set_name(&p->functions[function], name, len);
}

/* Copies what `like` has and f lacks. */
static int complete(struct program_function *f, const struct program_function *like)
{
	if (!*f->name && like->name && *like->name && set_name(f, like->name, NAME_MAX_BYTES))
		return -ENOMEM;
	if (f->has_lines || !like->has_lines)
		return 0;
	f->lines = calloc(like->nlines + 1, sizeof(*f->lines));
	if (!f->lines)
		return -ENOMEM;
	if (like->nlines)
		memcpy(f->lines, like->lines, like->nlines * sizeof(*f->lines));
	f->nlines = like->nlines;
	f->has_lines = true;
	return 0;
}

static int add_function(struct program *p, const struct program_function *like, uint32_t hash)
{
	struct program_function f = {
		.source = like->source,
		.first = like->first,
		.last = like->last,
		.code = like->code,
		.role = like->role,
		.name = strndup(like->name ?: "", NAME_MAX_BYTES),
	};
	int ret = f.name ? array_grow(&p->functions, p->nfunctions, sizeof(f)) : -ENOMEM;

	if (!ret)
		ret = hash_index_add(&p->index->functions, hash, p->nfunctions);
	if (ret) {
		free(f.name);
		return ret;
	}
	p->functions[p->nfunctions++] = f;
	return 0;
}

int program_function(struct program *p, const struct program_function *like, uint32_t *out)
{
	uint32_t hash = hash_of(like), id;
	size_t at = hash;
	int ret;

	while (hash_index_next(&p->index->functions, hash, &at, &id)) {
		if (!is_like(&p->functions[id], like))
			continue;
		*out = id;
		return complete(&p->functions[id], like);
	}
	if (p->nfunctions == TRACE_FUNCTIONS)
		return -ENOSPC;
	ret = add_function(p, like, hash);
	if (ret)
		return ret;
	*out = p->nfunctions - 1;
	return complete(&p->functions[*out], like);
}

/* Adds lines, or counts the hits as lost of those for which there is no room. */
static int add_lines(struct program *p, struct stats_lines *to, const struct stats_lines *from)
{
	int64_t end = (int64_t)from->first + from->n;
	int ret = from->at ? lines_grow(to, lines_reach(to, from->first, end - 1), &p->lines_left)
			   : 0;

	if (ret && ret != -ENOSPC)
		return ret;
	for (uint32_t i = 0; i < from->n; i++) {
		struct stats_line *line = stats_line(to, (int64_t)from->first + i);

		if (!line) {
			p->lost_hits += from->at[i].hits;
			continue;
		}
		line->hits += from->at[i].hits;
		line->self_ns += from->at[i].self_ns;
		line->total_ns += from->at[i].total_ns;
	}
	return 0;
}

int program_add(struct program *p, uint32_t function, const struct stats_function *from)
{
	struct stats_function *to = &p->functions[function].stats;

	to->calls += from->calls;
	to->self_ns += from->self_ns;
	to->total_ns += from->total_ns;
	return add_lines(p, &to->lines, &from->lines);
}

int program_add_totals(struct program *p, uint32_t source, const struct stats_lines *lines)
{
	return add_lines(p, &p->sources[source].totals, lines);
}

// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "chrome.h"
#include "event.h"
#include "listing.h"
#include "raw_write.h"
#include "recorder.h"
#include "stats.h"

#define KINDS 8 /* of hook_event_kind */
#define UNKNOWN UINT32_MAX

#define SAMPLES 1024

/* The times between the events of the module's own function. */
struct calibration {
	uint64_t thread, frame;	     /* its own */
	uint32_t ns[KINDS][SAMPLES]; /* after an event of this kind */
	uint32_t n[KINDS];
};

/* A Lua state. */
struct track {
	struct recorder *recorder;
	struct hook_state *state; /* of the current events */
	struct align *align;
	struct stats *stats;
	struct raw_writer *raw; /* NULL: none */
	struct chrome *chrome;	/* NULL: none */
	enum trace_dialect dialect;
	uint32_t *functions; /* by the module's ID: of the program; UNKNOWN: not yet */
	size_t nfunctions;
	uint64_t stamp; /* the last event's */
	uint64_t now;	/* the program's time */
	uint8_t last_kind;
	struct calibration *calibration; /* NULL: it does not run now */
	uint64_t outer_frame;		 /* of the last FRAME event */
	bool hides;	  /* FRAME events: of luabpf's own LUA_INIT, which started the module */
	uint32_t nhidden; /* of these frames, those that run still, */
	uint32_t above;	  /* and the calls on top of them */
};

struct recorder {
	struct recorder_options options;
	struct program *program;
	struct raw_file *raw;
	struct track **tracks;
	size_t ntracks;
	struct recorder_losses losses;
	uint64_t nevents;
	uint64_t own_ns[KINDS]; /* the hook's time after an event of this kind */
};

int recorder_new(const struct recorder_options *options, struct recorder **out)
{
	__recorder struct recorder *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->options = *options;
	ret = program_new(&r->program);
	if (!ret && options->raw)
		ret = raw_file_new(options->raw, r->program, &r->raw);
	if (ret)
		return ret;
	if (options->chrome)
		chrome_begin(options->chrome);
	*out = TAKE_PTR(r);
	return 0;
}

static void track_free(struct track *t)
{
	align_free(&t->align);
	stats_free(&t->stats);
	raw_writer_free(&t->raw);
	chrome_free(&t->chrome);
	free(t->functions);
	free(t->calibration);
	free(t);
}

void recorder_free(struct recorder **recorder)
{
	struct recorder *r = *recorder;

	if (!r)
		return;
	for (size_t i = 0; i < r->ntracks; i++)
		track_free(r->tracks[i]);
	free(r->tracks);
	raw_file_free(&r->raw);
	program_free(&r->program);
	free(r);
	*recorder = NULL;
}

/* ---- a new Lua state ------------------------------------------------------------------------- */

static int put_action(void *track, const struct trace_action *action)
{
	struct track *t = track;
	int ret = stats_put(t->stats, action);

	if (!ret && t->raw)
		ret = raw_writer_put(t->raw, action);
	if (!ret && t->chrome)
		ret = chrome_put(t->chrome, action);
	return ret;
}

static enum trace_role role_of(void *program, uint32_t function)
{
	const struct program *p = program;

	return function < p->nfunctions ? p->functions[function].role : TRACE_ROLE_LUA;
}

static enum trace_dialect dialect_of(const struct hook_header *header)
{
	if (header->vm == HOOK_VM_LUAJIT)
		return TRACE_LUAJIT;
	return header->vm == 501 ? TRACE_LUA51 : TRACE_LUA52_ON;
}

static int track_open(struct recorder *r, struct track *t, const struct hook_header *header)
{
	const struct trace_roles roles = {.of = role_of, .ctx = r->program};
	const struct trace_sink sink = {.put = put_action, .ctx = t};
	int ret;

	t->recorder = r;
	t->dialect = dialect_of(header);
	ret = align_new(t->dialect, &roles, &sink, &t->align);
	if (!ret)
		ret = stats_new(r->program, &t->stats);
	if (!ret && r->raw)
		ret = raw_writer_new(r->raw, &t->raw);
	if (!ret && r->options.chrome)
		ret = chrome_new(r->options.chrome, r->program, header->pid, header->state,
				 &t->chrome);
	return ret;
}

static int track_of(struct recorder *r, struct hook_state *state, struct track **out)
{
	struct track *t = hook_state_data(state);
	int ret;

	if (!t) {
		ret = array_grow(&r->tracks, r->ntracks, sizeof(*r->tracks));
		if (ret)
			return ret;
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		r->tracks[r->ntracks++] = t;
		hook_state_set_data(state, t);
		ret = track_open(r, t, hook_state_header(state));
		if (ret)
			return ret;
	}
	t->state = state;
	*out = t;
	return 0;
}

/* ---- a new function -------------------------------------------------------------------------- */

/* The role of a C function, by the last part of its name: "coroutine.yield". */
static enum trace_role role_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum trace_role role;
	} roles[] = {
		{"pcall", TRACE_ROLE_PROTECT},	{"xpcall", TRACE_ROLE_PROTECT},
		{"resume", TRACE_ROLE_PROTECT}, {"yield", TRACE_ROLE_YIELD},
		{"error", TRACE_ROLE_ERROR},
	};
	const char *dot = strrchr(name, '.');

	name = dot ? dot + 1 : name;
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(name, roles[i].name))
			return roles[i].role;
	return TRACE_ROLE_C;
}

/* "SIZE MTIME_NS PATH", as it was when the source's first function was called. */
static int set_file(struct program_source *source, const char *bytes, size_t len)
{
	__free char *text = strndup(bytes, len);
	char *end, *path;

	if (!text)
		return -ENOMEM;
	source->size = strtoull(text, &end, 10);
	source->mtime_ns = strtoll(end, &end, 10);
	path = *end == ' ' ? end + 1 : "";
	if (*path != '/')
		return 0;
	source->has_stamp = true;
	source->path = strdup(path);
	return source->path ? 0 : -ENOMEM;
}

/* A relative name is another after chdir(): the first one with the path stands for all. */
static void find_same(struct program *p, uint32_t source)
{
	for (uint32_t i = 0; i < source && p->sources[source].path; i++)
		if (p->sources[i].path && !strcmp(p->sources[i].path, p->sources[source].path)) {
			p->sources[source].same = i + 1;
			return;
		}
}

static int source_of(struct track *t, const struct hook_func *func, uint32_t *out)
{
	struct program *p = t->recorder->program;
	size_t len;
	const char *bytes = hook_state_bytes(t->state, func->source, &len);
	int ret = program_source(p, bytes, len, out);

	bytes = hook_state_bytes(t->state, func->file, &len);
	if (!ret && len && !p->sources[*out].path) {
		ret = set_file(&p->sources[*out], bytes, len);
		find_same(p, *out);
	}
	if (!ret && p->sources[*out].same)
		*out = p->sources[*out].same - 1;
	return ret;
}

/* Returns the functions' numbers, by hook_twin(); the dumped one's is `twin`. NULL: out of memory. */
static uint32_t *number_twins(const struct listing *listing, uint32_t twin)
{
	uint32_t *twins = calloc(listing->n, sizeof(*twins));

	for (size_t i = listing->n; twins && i-- > 0;) {
		const struct listing_function *f = &listing->functions[i];

		twins[i] = i == listing->root
				   ? twin
				   : hook_twin(twins[f->outer], listing->functions[f->outer].first,
					       f->first, f->before);
	}
	return twins;
}

/* Adds all functions of the dumped one, so that those that are never called are known, too. */
static int add_listed(struct track *t, const struct listing *listing, uint32_t twin,
		      struct program_function *like, uint32_t *out)
{
	__free uint32_t *twins = number_twins(listing, twin);
	int ret = twins ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < listing->n; i++) {
		const struct listing_function *from = &listing->functions[i];
		struct program_function f = {
			.source = like->source,
			.first = from->first,
			/* 5.1 to 5.4 give the main chunk's as 0 */
			.last = from->last,
			.code = hook_twin_hash(from->code, twins[i]),
			.lines = from->lines,
			.nlines = from->nlines,
			.has_lines = true,
			.name = i == listing->root ? like->name : NULL,
		};
		uint32_t id;

		ret = program_function(t->recorder->program, &f, &id);
		if (i == listing->root)
			*out = id;
	}
	return ret;
}

static int add_lua(struct track *t, const struct hook_func *func, struct program_function *f,
		   uint32_t *out)
{
	__listing struct listing listing = {};
	size_t len;
	const char *dump = hook_state_bytes(t->state, func->dump, &len);
	int ret = source_of(t, func, &f->source);

	if (ret)
		return ret;
	f->first = func->line & INT32_MAX;
	f->last = func->last_line & INT32_MAX;
	ret = listing_parse((const uint8_t *)dump, len, &listing);
	if (ret == -ENOMEM)
		return ret;
	if (!ret)
		return add_listed(t, &listing, func->twin, f, out);
	t->recorder->losses.functions++;
	f->code = func->identity;
	return program_function(t->recorder->program, f, out);
}

/* "lua5.4+0x2d90": a C function that has no name. "?": a builtin. */
static char *name_by_place(const struct track *t, const struct hook_func *func)
{
	size_t len;
	const char *path = hook_state_bytes(t->state, func->source, &len);
	const char *slash = memrchr(path, '/', len);
	char *name = NULL;

	if (!func->identity)
		return strdup("?");
	if (slash) {
		len -= slash + 1 - path;
		path = slash + 1;
	}
	if (asprintf(&name, "%.*s+0x%" PRIx64, (int)len, path, func->identity) < 0)
		return NULL;
	return name;
}

static int add_function(struct track *t, uint32_t id, uint32_t *out)
{
	const struct hook_func *func = hook_state_func(t->state, id);
	struct program_function f = {.source = UINT32_MAX, .role = TRACE_ROLE_C};
	__free char *name = NULL;
	const char *bytes;
	size_t len;

	if (!func)
		return -ENOENT;
	bytes = hook_state_bytes(t->state, func->name, &len);
	name = func->kind == HOOK_C && !len ? name_by_place(t, func) : strndup(bytes, len);
	if (!name)
		return -ENOMEM;
	f.name = name;
	if (func->kind == HOOK_LUA || func->kind == HOOK_MAIN) {
		f.role = TRACE_ROLE_LUA;
		return add_lua(t, func, &f, out);
	}
	f.role = func->kind == HOOK_C ? role_of_name(name) : TRACE_ROLE_C;
	return program_function(t->recorder->program, &f, out);
}

/* *out: the program's function; TRACE_NO_FUNCTION: it is not known. */
static int function_of(struct track *t, uint32_t id, uint32_t *out)
{
	int ret;

	*out = TRACE_NO_FUNCTION;
	if (id >= hook_state_nfuncs(t->state))
		return 0;
	if (id >= t->nfunctions) {
		size_t n = hook_state_nfuncs(t->state);
		uint32_t *grown = reallocarray(t->functions, n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + t->nfunctions, 0xff, (n - t->nfunctions) * sizeof(*grown));
		t->functions = grown;
		t->nfunctions = n;
	}
	if (t->functions[id] == UNKNOWN) {
		ret = add_function(t, id, &t->functions[id]);
		if (ret == -ENOENT || ret == -ENOSPC)
			return 0;
		if (ret)
			return ret;
	}
	*out = t->functions[id];
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint8_t kind_of(const struct hook_event *event)
{
	uint32_t kind = event->kind_and_line >> 24;

	return kind < KINDS ? kind : 0;
}

static int compare_ns(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* True if this is the call of the module's own function. */
static bool is_own(const struct track *t, const struct hook_event *event)
{
	const struct hook_func *func = hook_state_func(t->state, event->func);
	size_t len = 0;
	const char *source;

	if (kind_of(event) != HOOK_EV_CALL || !func || func->kind != HOOK_MAIN)
		return false;
	source = hook_state_bytes(t->state, func->source, &len);
	return len == strlen(HOOK_OWN_SOURCE) && !memcmp(source, HOOK_OWN_SOURCE, len);
}

static void end_calibration(struct track *t)
{
	struct calibration *c = t->calibration;
	uint64_t *own = t->recorder->own_ns;

	for (int kind = 0; kind < KINDS; kind++) {
		qsort(c->ns[kind], c->n[kind], sizeof(c->ns[kind][0]), compare_ns);
		own[kind] = c->n[kind] ? c->ns[kind][c->n[kind] / 2] : 0;
	}
	own[HOOK_EV_TAIL_CALL] = own[HOOK_EV_CALL];
	own[HOOK_EV_TAIL_RETURN] = own[HOOK_EV_RETURN];
	free(c);
	t->calibration = NULL;
}

/* An event of the module's own function, or of what it calls. */
static void calibrate(struct track *t, const struct hook_event *event)
{
	struct calibration *c = t->calibration;
	uint8_t kind = kind_of(event), last = t->last_kind;
	uint64_t ns = event->time - t->stamp;

	if (kind != HOOK_EV_WAITED && last != HOOK_EV_WAITED && ns < UINT32_MAX &&
	    c->n[last] < SAMPLES)
		c->ns[last][c->n[last]++] = ns;
	if (!c->frame && kind == HOOK_EV_LINE)
		c->frame = event->frame;
	if (kind == HOOK_EV_RETURN && event->thread == c->thread && event->frame == c->frame)
		end_calibration(t);
}

static int begin_calibration(struct track *t, const struct hook_event *event)
{
	t->calibration = calloc(1, sizeof(*t->calibration));
	if (!t->calibration)
		return -ENOMEM;
	t->calibration->thread = event->thread;
	return 0;
}

/* is_own: the time until this event is luabpf's own. */
static void advance(struct track *t, const struct hook_event *event, bool is_own)
{
	uint8_t kind = kind_of(event);
	uint64_t ns = event->time > t->stamp ? event->time - t->stamp : 0;
	uint64_t own = kind == HOOK_EV_WAITED ? event->frame : t->recorder->own_ns[t->last_kind];

	if (t->stamp && ns > own && !is_own)
		t->now += ns - own;
	else if (!t->stamp)
		t->now = event->time;
	if (event->time > t->stamp)
		t->stamp = event->time;
	t->last_kind = kind;
}

/* Sets the frames' identities as event.h has them. */
static void set_frames(struct track *t, const struct hook_event *from, struct trace_event *to)
{
	to->frame = from->frame;
	if (t->dialect == TRACE_LUA51 && from->frame)
		to->caller = from->frame - 1;
	if (t->dialect == TRACE_LUAJIT) {
		to->frame = from->frame & UINT32_MAX;
		to->caller = from->frame >> 32;
	}
	if (kind_of(from) == HOOK_EV_FRAME) {
		to->caller = t->outer_frame;
		t->outer_frame = to->frame;
	}
}

/* The chunk of LUA_INIT that ran when the module started, and the module's function, are luabpf's. */
static int outer_function(struct track *t, uint32_t id, uint32_t *out)
{
	const struct hook_func *func = hook_state_func(t->state, id);
	size_t len = 0;
	const char *source = func ? hook_state_bytes(t->state, func->source, &len) : "";

	t->hides |= len >= 9 && !memcmp(source, "=LUA_INIT", 9);
	*out = TRACE_NO_FUNCTION;
	t->nhidden += t->hides;
	return t->hides ? 0 : function_of(t, id, out);
}

static int put_event(struct track *t, const struct hook_event *from)
{
	struct trace_event event = {
		.time_ns = t->now, .thread = from->thread, .function = TRACE_NO_FUNCTION};
	int ret = 0;

	switch (kind_of(from)) {
	case HOOK_EV_CALL:
		event.kind = TRACE_EVENT_CALL;
		ret = function_of(t, from->func, &event.function);
		break;
	case HOOK_EV_FRAME:
		event.kind = hook_state_header(t->state)->flags & HOOK_FORKED ? TRACE_EVENT_FRAME
									      : TRACE_EVENT_CALL;
		ret = outer_function(t, from->func, &event.function);
		break;
	case HOOK_EV_TAIL_CALL:
		event.kind = TRACE_EVENT_TAIL_CALL;
		ret = function_of(t, from->func, &event.function);
		break;
	case HOOK_EV_RETURN:
		event.kind = TRACE_EVENT_RETURN;
		break;
	case HOOK_EV_LINE:
		event.kind = TRACE_EVENT_LINE;
		event.line = from->kind_and_line & HOOK_LINE_MAX;
		break;
	default:
		return 0;
	}
	set_frames(t, from, &event);
	return ret ? ret : align_event(t->align, &event);
}

/* Counts the calls above luabpf's own frames, until these have returned. */
static void follow_hidden(struct track *t, const struct hook_event *event)
{
	uint8_t kind = kind_of(event);

	if (t->nhidden && kind == HOOK_EV_CALL)
		t->above++;
	else if (kind == HOOK_EV_RETURN && t->above)
		t->above--;
	else if (kind == HOOK_EV_RETURN && t->nhidden)
		t->nhidden--;
}

int recorder_events(void *recorder, struct hook_state *state, const struct hook_event *events,
		    size_t n)
{
	struct track *t;
	int ret = track_of(recorder, state, &t);

	if (!ret)
		t->recorder->nevents += n;
	for (size_t i = 0; !ret && i < n; i++) {
		bool is_calibration = t->calibration;

		if (is_calibration)
			calibrate(t, &events[i]);
		else if (is_own(t, &events[i]))
			ret = begin_calibration(t, &events[i]);
		advance(t, &events[i], is_calibration || (t->nhidden && !t->above));
		is_calibration |= t->calibration != NULL;
		if (!ret && !is_calibration) {
			follow_hidden(t, &events[i]);
			ret = put_event(t, &events[i]);
		}
	}
	return ret;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A call site may have given a name after the first call. */
static int name_functions(struct track *t)
{
	int ret = 0;

	for (uint32_t id = 0; !ret && id < t->nfunctions; id++) {
		const struct hook_func *func = hook_state_func(t->state, id);
		struct program_function *f;
		const char *name;
		size_t len;

		if (t->functions[id] == UNKNOWN || !func)
			continue;
		f = &t->recorder->program->functions[t->functions[id]];
		name = hook_state_bytes(t->state, func->name, &len);
		if (!*f->name && len && f->role == TRACE_ROLE_LUA)
			ret = program_name(t->recorder->program, t->functions[id], name, len);
	}
	return ret;
}

static int track_finish(struct track *t)
{
	struct align_losses losses;
	int ret = name_functions(t);

	if (!ret)
		ret = align_finish(t->align);
	stats_finish(t->stats);
	if (t->raw)
		raw_writer_finish(t->raw);
	if (t->chrome)
		chrome_finish(t->chrome);
	if (!ret)
		ret = stats_merge(t->stats);
	align_losses(t->align, &losses);
	t->recorder->losses.stacks.frames += losses.frames;
	t->recorder->losses.stacks.coroutines += losses.coroutines;
	t->recorder->losses.stacks.misaligned += losses.misaligned;
	return ret;
}

int recorder_finish(struct recorder *r)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < r->ntracks; i++)
		ret = track_finish(r->tracks[i]);
	if (!ret && r->raw)
		ret = raw_file_finish(r->raw);
	if (r->options.chrome)
		chrome_end(r->options.chrome);
	return ret;
}

const struct program *recorder_program(const struct recorder *recorder)
{
	return recorder->program;
}

uint64_t recorder_nevents(const struct recorder *recorder)
{
	return recorder->nevents;
}

void recorder_losses(const struct recorder *recorder, struct recorder_losses *out)
{
	*out = recorder->losses;
	out->lines = recorder->program->lost_hits;
}

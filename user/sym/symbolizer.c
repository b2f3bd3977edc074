// SPDX-License-Identifier: BSD-2-Clause
/*
 * A sample's row: each frame is described once, by what it is, who called it and what it stood on,
 * and then found again in its image's table of frames; but for C functions without a name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/main_thread.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "image_priv.h"
#include "lua/proto_text.h"
#include "proto_order.h"
#include "state_cause.h"
#include "symbolizer.h"

int symbolizer_new(struct prof *prof, struct symbolizer **out)
{
	struct symbolizer *s __cleanup(symbolizer_free) = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->prof = prof;
	s->round = s->zone_round = 1;
	r = native_new(&s->native);
	if (r)
		return r;
	*out = TAKE_PTR(s);
	return 0;
}

void symbolizer_record_vms(struct symbolizer *s)
{
	s->by_vm = true;
}

void symbolizer_free(struct symbolizer **sp)
{
	if (!*sp)
		return;
	native_free(&(*sp)->native);
	zones_free(&(*sp)->zones);
	free(*sp);
	*sp = NULL;
}

void symbolizer_begin(struct symbolizer *s, struct prof *prof)
{
	s->prof = prof;
}

size_t symbolizer_files(const struct symbolizer *s, uint64_t *bytes)
{
	return native_files(s->native, bytes);
}

void symbolizer_round(struct symbolizer *s)
{
	s->round++;
	s->zone_round++;
}

void symbolizer_committed(struct symbolizer *s)
{
	s->zone_round++;
}

int symbolizer_record_zones(struct symbolizer *s, const struct zones_options *options)
{
	return zones_new(options, &s->zones);
}

int symbolizer_zone(struct symbolizer *s, const struct lb_rec_zone *rec)
{
	return s->zones ? zones_name(s->zones, rec) : 0;
}

void symbolizer_zones(const struct symbolizer *s, struct zones_counts *out)
{
	*out = (struct zones_counts){};
	if (s->zones)
		zones_counts(s->zones, out);
}

int symbolizer_proto(struct image *image, const struct lb_rec_proto *rec,
		     const struct lb_build *build)
{
	return protos_put(image->protos, rec, build, image->owner->round);
}

static const struct names *names_of(struct image *image, uint64_t g, const struct lb_build *build,
				    uint64_t missing)
{
	return vm_names_get(&image->vms, &image->remote.mem, build, g, missing,
			    image->owner->round);
}

/* A sample; and the VM whose frames are described: its global_State, and the index behind its last frame. */
struct frame_ctx {
	struct symbolizer *s;
	struct image *image;
	const struct lb_rec_sample *rec;
	const struct lb_build *build;
	const char *vm;
	const struct sym_family *family;
	uint64_t g;
	uint32_t end;
};

static const struct protos_entry *prototype(const struct frame_ctx *c, const struct lb_frame *f)
{
	return protos_get(c->image->protos, c->build, LB_FRAME_PTR(f), f->fp, c->s->round);
}

/*
 * A function's name in the loaded libraries. A library that came later is found by looking again.
 */
static const char *library_name(const struct frame_ctx *c, const struct lb_frame *f)
{
	const char *(*find)(const struct names *names, uint64_t ptr) =
		LB_FRAME_KIND(f) == LB_FRAME_FF ? c->family->builtin : c->family->cfunction;
	const char *name = find(names_of(c->image, c->g, c->build, 0), LB_FRAME_PTR(f));

	if (!name)
		name = find(names_of(c->image, c->g, c->build, LB_FRAME_PTR(f)), LB_FRAME_PTR(f));
	return name;
}

/* Fills what a C or fast function's frame is called. */
static void name_native(const struct frame_ctx *c, const struct lb_frame *f, struct prof_frame *out)
{
	uint64_t addr = LB_FRAME_PTR(f);

	if (LB_FRAME_KIND(f) == LB_FRAME_FF) {
		out->kind = PROF_BUILTIN;
		out->addr = addr;
		out->symbol = library_name(c, f);
		return;
	}
	out->kind = PROF_C;
	native_offset(c->image->maps, addr, &out->chunk, &out->addr);
	if (c->family->libraries_first && native_registered(c->image->maps, addr, &out->symbol))
		out->symbol = library_name(c, f);
	if (!out->symbol && native_symbol(c->image->maps, addr, &out->symbol) &&
	    !c->family->libraries_first)
		out->symbol = library_name(c, f);
}

/*
 * The name of a function where its parent's bytecode defines it; "": there it has none; NULL: its
 * parent is not on the stack. Only a parent that is on the very stack is certain to be alive, and
 * with it this child: a dead one's child may have left its address to another.
 */
static const char *definition_name(const struct frame_ctx *c, uint32_t i)
{
	uint64_t child = LB_FRAME_PTR(&c->rec->stack.frame[i]);
	const char *none = NULL;
	uint32_t j;

	for (j = i + 1; j < c->end; j++) {
		const struct lb_frame *f = &c->rec->stack.frame[j];
		const struct protos_entry *parent;
		const char *name;

		if (LB_FRAME_KIND(f) != LB_FRAME_LUA)
			continue;
		parent = prototype(c, f);
		if (!parent || !parent->proto)
			continue;
		name = protos_definition(parent, child);
		if (name)
			return name;
		if (c->family->complete(parent->proto) && c->family->child(parent->proto, child))
			none = "";
	}
	return none;
}

/*
 * True if a function on the stack defines another one by this name, which an instruction of frame i's caller gives it. LuaJIT
 * leaves no trace of a tail call: the other one was called, and has called this one.
 */
static bool is_name_of_another(const struct frame_ctx *c, uint32_t i, const char *name)
{
	uint64_t child = LB_FRAME_PTR(&c->rec->stack.frame[i]);

	for (uint32_t j = i + 1; j < c->end; j++) {
		const struct lb_frame *f = &c->rec->stack.frame[j];
		const struct protos_entry *parent =
			LB_FRAME_KIND(f) == LB_FRAME_LUA ? prototype(c, f) : NULL;

		if (parent && parent->proto && protos_defines_another(parent, child, name))
			return true;
	}
	return false;
}

/* A frame with one of these flags was not called by an instruction of the frame below. */
#define UNCALLED (LB_FRAME_TAIL | LB_FRAME_FIN | LB_FRAME_HOOK)

/* The frame below, when it is a Lua function of the same thread: its bytecode names its callee. */
static const struct lb_frame *caller_of(const struct lb_rec_sample *rec, uint32_t i)
{
	const struct lb_frame *caller;

	if (i + 1 >= rec->stack.n || LB_FRAME_FLAGS(&rec->stack.frame[i]) & UNCALLED)
		return NULL;
	caller = &rec->stack.frame[i + 1];
	if (LB_FRAME_KIND(caller) != LB_FRAME_LUA || LB_FRAME_FLAGS(caller) & LB_FRAME_THREAD ||
	    caller->pc == LB_NO_PC)
		return NULL;
	return caller;
}

/*
 * The name under which the host keeps a function that C code called and that no parent on the stack
 * defines; NULL: not known. "" for a main function without one: NULL would merge it with another main
 * function of the same chunk name that has one.
 */
static const char *kept_name_of(const struct frame_ctx *c, uint32_t i, const struct protos_entry *k)
{
	const char *none = k->family->is_main(k->proto) ? "" : NULL, *name;
	struct image *image = c->image;

	if (caller_of(c->rec, i))
		return NULL;
	if (!k->kept_as &&
	    !kept_read(&image->kept, &image->remote.mem, c->build, c->g, c->s->round)) {
		name = kept_name(image->kept, LB_FRAME_PTR(&c->rec->stack.frame[i]));
		protos_set_kept(image->protos, k, name ? name : "");
	}
	return k->kept_as && *k->kept_as ? k->kept_as : none;
}

#define POSITION_SIZE 64

/*
 * Writes the position of a function without lines in its chunk: "2.1" is the first child of the
 * main function's second; "" for the main function. False if not all of its parents are on the
 * stack.
 */
static bool put_path(const struct frame_ctx *c, uint32_t i, const struct proto *proto,
		     char out[POSITION_SIZE])
{
	uint64_t child = LB_FRAME_PTR(&c->rec->stack.frame[i]);
	uint32_t numbers[8], n = 0, j;
	size_t len = 0;

	for (j = i + 1; j < c->end && !c->family->is_main(proto); j++) {
		const struct lb_frame *f = &c->rec->stack.frame[j];
		const struct protos_entry *parent;
		uint32_t number;

		if (LB_FRAME_KIND(f) != LB_FRAME_LUA || n == 8)
			continue;
		parent = prototype(c, f);
		number = parent && parent->proto ? c->family->child(parent->proto, child) : 0;
		if (!number)
			continue;
		numbers[n++] = number;
		child = LB_FRAME_PTR(f);
		proto = parent->proto;
	}
	out[0] = '\0';
	while (n && len + 12 < POSITION_SIZE)
		len += (size_t)snprintf(out + len, POSITION_SIZE - len,
					len ? ".%" PRIu32 : "%" PRIu32, numbers[--n]);
	return c->family->is_main(proto);
}

/*
 * Identifies a function whose chunk and line do not: its path where the chunk has a name,
 * else "~" and a hash of its contents, and a number if there are several of them.
 */
static void put_position(const struct frame_ctx *c, uint32_t i, const struct protos_entry *k,
			 char position[POSITION_SIZE], struct prof_frame *out)
{
	bool chunk = strcmp(out->chunk, PROTO_NO_CHUNK) != 0;

	if (k->family->complete(k->proto))
		out->shape = k->family->contents(k->proto);
	out->position = position;
	if (chunk && put_path(c, i, k->proto, position))
		return;
	if (out->order && out->order != PROF_NO_ORDER)
		snprintf(position, POSITION_SIZE, "~%08" PRIx32 ".%" PRIu32, out->shape,
			 out->order + 1);
	else
		snprintf(position, POSITION_SIZE, "~%08" PRIx32, out->shape);
}

/* -ESTALE: another prototype took the address within this round; -ENOENT: it cannot be read. */
static int describe_lua(const struct frame_ctx *c, uint32_t i, char position[POSITION_SIZE],
			struct prof_frame *out)
{
	const struct lb_frame *f = &c->rec->stack.frame[i];
	const struct protos_entry *k = prototype(c, f);
	size_t len;

	if (!k)
		return -ENOMEM;
	if (k->ambiguous)
		return -ESTALE;
	if (!k->proto || family_misfit(k->family, k->proto))
		return -ENOENT;
	out->kind = PROF_LUA;
	out->chunk = k->family->chunkname(k->proto, &len);
	out->firstline = k->family->firstline(k->proto);
	out->line = f->pc == LB_NO_PC ? -1 : k->family->line(k->proto, f->pc);
	out->defname = definition_name(c, i);
	if (!out->defname)
		out->defname = kept_name_of(c, i, k);
	out->shape = k->family->shape(k->proto);
	out->order = k->order;
	out->place = k->place;
	out->contents = k->contents;
	if (proto_is_nameless(k->family, k->proto))
		put_position(c, i, k, position, out);
	return 0;
}

static int describe(const struct frame_ctx *c, uint32_t i, const struct lb_frame *caller,
		    uint32_t *id)
{
	const struct lb_frame *f = &c->rec->stack.frame[i];
	struct prof_frame out = {.line = -1};
	const struct protos_entry *k;
	char position[POSITION_SIZE];
	int r = 0;

	if (LB_FRAME_KIND(f) == LB_FRAME_LUA)
		r = describe_lua(c, i, position, &out);
	else
		name_native(c, f, &out);
	if (r)
		return r;
	if (caller) {
		k = prototype(c, caller);
		if (!k)
			return -ENOMEM;
		if (k->ambiguous)
			return -ESTALE;
		if (k->proto)
			k->family->callname(k->proto, caller->pc, &out.callname);
		if (out.kind == PROF_LUA && out.callname && (!out.defname || !*out.defname) &&
		    is_name_of_another(c, i, out.callname))
			out.callname = NULL;
	}
	return prof_frame_id(c->s->prof, &out, id);
}

static int frame_id(const struct frame_ctx *c, uint32_t i, uint64_t below, uint32_t *id)
{
	const struct lb_frame *f = &c->rec->stack.frame[i], *caller = caller_of(c->rec, i);
	struct cached_frame *cached, probe = {};
	int r;

	/* what is cached holds only while its prototypes do */
	if (LB_FRAME_KIND(f) == LB_FRAME_LUA) {
		const struct protos_entry *k = prototype(c, f);

		if (k && k->ambiguous)
			return -ESTALE;
		if (k && k->waits)
			return -EAGAIN;
	}
	probe.key.word = f->word & ~((uint64_t)(LB_FRAME_THREAD | LB_FRAME_TRACE) << 48);
	probe.key.pc = f->pc;
	probe.key.fp = f->fp;
	probe.key.below =
		LB_FRAME_KIND(f) == LB_FRAME_C ? image_maps_now(c->image, LB_FRAME_PTR(f)) : below;
	if (caller) {
		probe.key.caller = caller->word & ~(0xffULL << 48);
		probe.key.caller_pc = caller->pc;
		probe.key.caller_fp = caller->fp;
	}
	HASH_FIND(hh, c->image->frames, &probe.key, sizeof(probe.key), cached);
	if (cached) {
		*id = cached->id;
		return 0;
	}
	r = describe(c, i, caller, id);
	if (r)
		return r;
	/* a library that names this C function may be loaded later, or be read in vain now */
	if (LB_FRAME_KIND(f) != LB_FRAME_LUA && !prof_frame(c->s->prof, *id)->symbol)
		return 0;
	cached = calloc(1, sizeof(*cached));
	if (!cached)
		return -ENOMEM;
	cached->key = probe.key;
	cached->id = *id;
	HASH_ADD(hh, c->image->frames, key, sizeof(cached->key), cached);
	if (!cached->hh.tbl)
		free(cached);
	return 0;
}

/* Sets below[i] to a hash of all functions below frame i in the same VM: a definition's name depends on them. */
static void below_of(const struct lb_rec_sample *rec, uint64_t *below)
{
	uint64_t h = 0;
	uint32_t i;

	for (i = rec->stack.n; i-- > 0;) {
		const struct lb_frame *f = &rec->stack.frame[i];

		below[i] = h;
		if (LB_FRAME_KIND(f) == LB_FRAME_VM) {
			h = 0;
			continue;
		}
		h = (h ^ f->fp ^ LB_FRAME_PTR(f) << 16) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
}

/* Why a sample is lost, by row_of()'s error. */
static const char *reason_of(const struct frame_ctx *c, int why)
{
	if (c->image->remote.waits)
		return "memory-waits";
	if (why == -EPROTO)
		return protos_misfit(c->image->protos, c->build);
	return why == -ESTALE ? "proto-ambiguous" : "proto-collected";
}

/*
 * A C function of PUC Lua that is just returning: a result has overwritten the address in its own slot,
 * but not the type yet. Its caller is on top again.
 */
static bool is_returning(const struct frame_ctx *c)
{
	const struct lb_frame *f = &c->rec->stack.frame[0];

	if (!c->family->slots_change || c->end < 2 || LB_FRAME_KIND(f) != LB_FRAME_C)
		return false;
	image_maps_now(c->image, LB_FRAME_PTR(f));
	return !native_is_code(c->image->maps, LB_FRAME_PTR(f));
}

static int pseudo_frame(struct symbolizer *s, enum prof_kind kind, uint32_t *id)
{
	struct prof_frame frame = {.kind = kind, .line = -1};

	return prof_frame_id(s->prof, &frame, id);
}

uint64_t symbolizer_changes(const struct symbolizer *s)
{
	return s->changes;
}

uint64_t symbolizer_snapshot_lines(const struct symbolizer *s)
{
	return s->snapshot_line;
}

/* A prototype of compiled code: working the code out takes longer than a VM lives that serves one request. */
static void learn_compiled(void *arg, uint64_t proto, uint32_t fp)
{
	struct image *image = arg;

	protos_get(image->protos, image->compiled_of, proto, fp, image->owner->round);
}

/*
 * Replaces a snapshot's frames by those of the bytecode from which the machine instruction was
 * compiled. Returns 0, 1 if it could not, or -ENOMEM.
 */
static int attribute(struct image *image, const struct lb_build *build, struct lb_rec_sample *rec)
{
	const struct sym_family *family = sym_family(build->family);
	int r = 0;

	if (!family->attribute)
		return 0;
	if (!image->compiled) {
		r = family->compiled_new(&image->remote.mem, &image->compiled);
		if (!r)
			family->compiled_watch(image->compiled, learn_compiled, image);
	}
	image->compiled_of = build;
	if (!r)
		r = family->attribute(image->compiled, build, names_of(image, rec->vm, build, 0),
				      rec);
	return r == -ENOENT ? 1 : r;
}

/* Returns the index of the frame that ends the VM whose frames begin at `from`. */
static uint32_t end_of_vm(const struct lb_rec_sample *rec, uint32_t from)
{
	while (from < rec->stack.n && LB_FRAME_KIND(&rec->stack.frame[from]) != LB_FRAME_VM)
		from++;
	return from;
}

/* The frames from i + 1 on are those of the VM that frame i names, which has the same build. */
static void enter_vm(struct frame_ctx *c, uint32_t i)
{
	c->g = LB_FRAME_PTR(&c->rec->stack.frame[i]);
	c->end = end_of_vm(c->rec, i + 1);
}

/* Appends the profile's frame of frame i. */
static int append(struct frame_ctx *c, uint32_t i, uint64_t below, uint32_t *ids, int *n)
{
	const struct lb_frame *f = &c->rec->stack.frame[i];
	int r;

	if (LB_FRAME_KIND(f) == LB_FRAME_VM) {
		enter_vm(c, i);
		return pseudo_frame(c->s, PROF_VM, &ids[(*n)++]);
	}
	r = frame_id(c, i, below, &ids[(*n)++]);
	if (r || !(LB_FRAME_FLAGS(f) & LB_FRAME_TAIL))
		return r;
	return pseudo_frame(c->s, PROF_TAIL, &ids[(*n)++]);
}

/* The frames of a sample from `first` on, as the profile's. Returns how many, or -errno. */
static int frames_of(const struct frame_ctx *innermost, uint32_t first,
		     uint32_t ids[2 * LB_MAX_FRAMES + 1])
{
	const struct lb_rec_sample *rec = innermost->rec;
	uint64_t below[LB_MAX_FRAMES + 1];
	struct frame_ctx vm = *innermost, *c = &vm;
	int r, n = 0;
	uint32_t i;

	below_of(rec, below);
	for (i = first; i < rec->stack.n; i++) {
		r = append(c, i, below[i], ids, &n);
		if (r)
			return r;
	}
	if (rec->stack.flags & LB_SAMPLE_CUT) {
		r = pseudo_frame(c->s, PROF_CUT, &ids[n++]);
		if (r)
			return r;
	}
	return n;
}

/* 0: records do not have it. */
static uint64_t coroutine_of(const struct frame_ctx *c)
{
	const struct lb_main_thread link = lb_main_thread_of(c->build);
	uint64_t L = c->rec->thread & ~7ULL; /* hostile, perhaps */

	return L && lb_may_be_main_thread(&link, L, c->rec->vm) ? L | PROF_MAIN : L;
}

/* The profile's frames of a sample. */
struct sample_frames {
	uint32_t ids[2 * LB_MAX_FRAMES + 1];
	uint32_t n;
};

/* Returns 0. -ENOENT, -ESTALE: the names cannot be known any more. -EPROTO: the layout is wrong, as most prototypes of the
 * build contradict it. */
static int name_frames(const struct frame_ctx *c, struct sample_frames *out)
{
	int n = frames_of(c, is_returning(c), out->ids);

	if (n != -ENOMEM && protos_misfit(c->image->protos, c->build))
		return -EPROTO;
	out->n = n < 0 ? 0 : (uint32_t)n;
	return n < 0 ? n : 0;
}

static int row_of(const struct frame_ctx *c, const struct sample_frames *frames, const char *zone,
		  bool snapshot_line, size_t *row)
{
	const struct lb_rec_sample *rec = c->rec;
	uint32_t first = is_returning(c);
	char comm[LB_COMM + 1] = {};
	struct prof_labels labels = {
		.vmstate = (char)LB_STATE_LETTER(rec->state),
		.cause = (uint8_t)state_cause(c->build, rec->state),
		.trace = rec->traceno,
		.snapshot_line = snapshot_line,
		.pid = rec->pid,
		.tid = rec->tid,
		.comm = comm,
		.coroutine = coroutine_of(c),
		.vm = c->s->by_vm ? rec->vm : 0,
		.zone = zone,
	};
	int r;

	if (first && LB_FRAME_KIND(&rec->stack.frame[first]) == LB_FRAME_LUA &&
	    labels.vmstate == 'C')
		labels.vmstate = 'I';
	memcpy(comm, rec->comm, LB_COMM);
	r = origin_id(&c->image->origin, c->s->prof, rec->build, c->vm, &labels.origin);
	return r ? r : prof_row_id(c->s->prof, frames->ids, frames->n, &labels, row);
}

static bool as_alike(const struct sample_frames *frames, struct alike_stack *out)
{
	if (frames->n > ALIKE_FRAMES)
		return false;
	out->n = frames->n;
	memcpy(out->ids, frames->ids, frames->n * sizeof(frames->ids[0]));
	return true;
}

static struct alike_place place_of(const struct lb_rec_sample *rec,
				   const struct alike_stack *snapshot)
{
	return (struct alike_place){rec->traceno, rec->mcofs, snapshot};
}

/* Replaces a snapshot's frames by those that the same code has in other VMs. False: these are not known. */
static bool take_alike(const struct frame_ctx *c, struct sample_frames *frames)
{
	struct alike_stack snapshot;
	const struct alike_place place = place_of(c->rec, &snapshot);
	const struct alike_stack *exact =
		as_alike(frames, &snapshot) ? alike_find(c->image->alike, &place) : NULL;

	if (!exact)
		return false;
	frames->n = exact->n;
	memcpy(frames->ids, exact->ids, exact->n * sizeof(exact->ids[0]));
	return true;
}

static void wait_for_alike(const struct frame_ctx *c, const struct sample_frames *frames,
			   size_t row, uint32_t count)
{
	struct alike_stack snapshot;
	const struct alike_place place = place_of(c->rec, &snapshot);

	if (c->rec->trace_fp && as_alike(frames, &snapshot))
		alike_wait(&c->image->alike, &place, row, count);
}

/* Moves the samples that waited for a place, which is known now, to their rows. */
static void settle(struct symbolizer *s, struct alike *alike, const struct alike_place *place)
{
	const struct alike_stack *exact = alike_find(alike, place);
	struct alike_waiting *waiting __free = NULL;
	size_t n = exact ? alike_take_waiting(alike, place, &waiting) : 0, i, to;
	struct prof_row row;

	for (i = 0; i < n; i++) {
		prof_row(s->prof, waiting[i].row, &row);
		row.labels.snapshot_line = false;
		if (prof_row_id(s->prof, exact->ids, exact->n, &row.labels, &to))
			continue;
		prof_move(s->prof, waiting[i].row, to, waiting[i].count);
		s->snapshot_line -= waiting[i].count;
	}
}

static bool is_same_place(const void *arg, uint32_t a, uint32_t b)
{
	const struct prof_frame *x = prof_frame(arg, a), *y = prof_frame(arg, b);

	return x->kind == y->kind && x->chunk == y->chunk && x->firstline == y->firstline &&
	       x->line == y->line && x->addr == y->addr;
}

/* Notes what was found for a snapshot: the same sample with its frames, and with the exact ones. */
static void learn_place(const struct frame_ctx *c, const struct lb_rec_sample *of_snapshot,
			const struct lb_rec_sample *of_code)
{
	struct frame_ctx at = *c;
	struct sample_frames frames;
	struct alike_stack snapshot, exact;
	const struct alike_place place = place_of(of_snapshot, &snapshot);

	at.rec = of_snapshot;
	at.end = end_of_vm(at.rec, 0);
	if (name_frames(&at, &frames) || !as_alike(&frames, &snapshot))
		return;
	at.rec = of_code;
	at.end = end_of_vm(at.rec, 0);
	if (name_frames(&at, &frames) || !as_alike(&frames, &exact))
		return;
	alike_learn(&c->image->alike, &place, of_snapshot->trace_fp, &exact, is_same_place,
		    c->s->prof);
	settle(c->s, c->image->alike, &place);
}

#define PLACES 64 /* that are learned by one sample */

/* A trace was read, for a sample rec: what it shows holds for those that could not be. c: of the attributed sample. */
static void learn_alike(const struct frame_ctx *c, const struct lb_rec_sample *rec)
{
	struct lb_rec_sample of_snapshot, of_code;
	uint32_t mcofs[PLACES], n, i;

	learn_place(c, rec, c->rec);
	n = alike_waits(c->image->alike)
		    ? alike_waiting_at(c->image->alike, rec->traceno, mcofs, PLACES)
		    : 0;
	for (i = 0; i < n; i++)
		if (!c->family->attribute_elsewhere(c->image->compiled, rec, mcofs[i], &of_snapshot,
						    &of_code))
			learn_place(c, &of_snapshot, &of_code);
}

/*
 * Names a sample's frames: those of the bytecode that the machine instruction was compiled from, if they can be known.
 * *snapshot_line: they are those of a snapshot. -errno as of name_frames().
 */
static int name_sample(struct frame_ctx *c, const struct lb_rec_sample *rec,
		       struct lb_rec_sample *attributed, struct sample_frames *frames,
		       bool *snapshot_line)
{
	int r = 0;

	if (rec->trace_fp) {
		memcpy(attributed, rec, LB_SAMPLE_SIZE(rec->stack.n));
		c->rec = attributed;
		r = attribute(c->image, c->build, attributed);
		if (r < 0)
			return r;
	}
	*snapshot_line = r != 0;
	c->end = end_of_vm(c->rec, 0);
	r = name_frames(c, frames);
	if ((r == -ENOENT || r == -ESTALE) && rec->trace_fp && !*snapshot_line) {
		/* BPF has not sent functions that the snapshot does not show: the VM was closed before they were read */
		c->rec = rec;
		c->end = end_of_vm(c->rec, 0);
		*snapshot_line = true;
		r = name_frames(c, frames);
	}
	if (!r && *snapshot_line)
		*snapshot_line = !take_alike(c, frames);
	else if (!r && rec->trace_fp && alike_waits(c->image->alike))
		learn_alike(c, rec);
	return r;
}

int symbolizer_sample(struct image *image, const struct lb_rec_sample *rec, uint32_t count,
		      const struct lb_build *build, const char *vm, struct symbolized *out)
{
	struct lb_rec_sample attributed;
	struct frame_ctx c = {
		.s = image->owner,
		.image = image,
		.rec = rec,
		.build = build,
		.vm = vm,
		.family = sym_family(build->family),
		.g = rec->vm,
	};
	struct sample_frames frames;
	bool snapshot_line = false;
	const char *zone;
	size_t row;
	int r;

	image_learn(image);
	image_bound(image);
	zone = zones_label(c.s->zones, &image->zones, &image->remote.mem, build, rec,
			   c.s->zone_round);
	r = name_sample(&c, rec, &attributed, &frames, &snapshot_line);
	if (!r)
		r = row_of(&c, &frames, zone, snapshot_line, &row);
	if (image->remote
		    .waits) /* memory was not read in time: a known name may be an earlier function's */
		r = -ETIMEDOUT;
	if (r == -ENOMEM || r == -EAGAIN)
		return r;
	protos_sampled(image->protos, count);
	if (r) {
		out->lost = reason_of(&c, r);
		return 0;
	}
	out->row = row;
	c.s->snapshot_line += snapshot_line ? count : 0;
	prof_count(c.s->prof, row, count);
	if (snapshot_line)
		wait_for_alike(&c, &frames, row, count);
	zones_count(c.s->zones, zone, count);
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recognises a PUC Lua build. lua_ident (lapi.c) has the release: it is exported, or its text is
 * found among the constants. The release selects the row of detect/puc/layouts.def. The row is then
 * checked against code: exported API functions are small, and their instructions hold the offsets
 * of the fields that they use; two of them also access prototypes, strings and tables. A row that
 * the code contradicts is refused: the structs were modified. Without lua_ident (5.1 compiled as C++
 * has none, linkers drop it if nothing refers to it), lua.c's banner has the release. Else _VERSION
 * has the version, texts that came or went with a release bound it, and exactly one row has to
 * agree with the code.
 */
#include "recognise.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "api.h"
#include "api_callers.h"
#include "gc.h"
#include "lib.h"
#include "vm.h"
#include "structs.h"

struct puc_row {
	const char *name;
	uint8_t first, last; /* releases of puc.version */
	struct puc_layout puc;
};

static const struct puc_row rows[] = {
#define PUC_LAYOUT(name_, version_, first_, last_, ...)                                            \
	{                                                                                          \
		.name = name_,                                                                     \
		.first = first_,                                                                   \
		.last = last_,                                                                     \
		.puc = {.version = version_, __VA_ARGS__},                                         \
	},
#include "layouts.def"
#undef PUC_LAYOUT
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

const struct puc_layout *puc_layout_row(size_t i, const char **name)
{
	if (i >= NROWS)
		return NULL;
	*name = rows[i].name;
	return &rows[i].puc;
}

const struct puc_layout *puc_layout_of(const char *release, const char **name)
{
	unsigned major, minor, patch = 0;
	char rest;
	size_t i;
	int n = sscanf(release, "%1u.%1u.%2u%c", &major, &minor, &patch, &rest);

	if (n != 3 && (n != 2 || strlen(release) != 3))
		return NULL;
	for (i = 0; i < NROWS; i++)
		if (rows[i].puc.version == major * 10 + minor && rows[i].first <= patch &&
		    patch <= rows[i].last)
			return puc_layout_row(i, name);
	return NULL;
}

/* ---- the release ----------------------------------------------------------------------------- */

struct release {
	unsigned version;  /* 51 .. 55 */
	unsigned patch;	   /* or ANY_PATCH */
	unsigned from, to; /* of ANY_PATCH: the bounds by texts */
	bool bounded;
	const char *source; /* of the release, for messages */
};
#define ANY_PATCH UINT32_MAX

/* "$Lua: Lua 5.1.5 Copyright", "$LuaVersion: Lua 5.4.4  Copyright" */
static bool parse_ident(const char *ident, struct release *r)
{
	static const char *const begin[] = {"$Lua: Lua 5.", "$LuaVersion: Lua 5."};
	unsigned minor, patch = 0;
	size_t i;

	for (i = 0; i < 2; i++) {
		size_t len = strlen(begin[i]);

		if (strncmp(ident, begin[i], len) != 0 || ident[len] < '1' || ident[len] > '9')
			continue;
		minor = (unsigned)(ident[len] - '0');
		if (ident[len + 1] == '.' && sscanf(ident + len + 2, "%2u", &patch) != 1)
			return false;
		*r = (struct release){.version = 50 + minor, .patch = patch};
		return true;
	}
	return false;
}

#define IDENT_BYTES 32
#define MAX_IDENTS 64

static bool ident_at(struct elf_file *elf, uint64_t vaddr, struct release *r)
{
	char text[IDENT_BYTES + 1] = "";

	return !elf_read(elf, vaddr, text, IDENT_BYTES) && parse_ident(text, r);
}

static int has_text(struct elf_file *elf, const char *text, size_t len)
{
	uint64_t at;

	return elf_find_bytes(elf, 0, text, len, &at);
}

/* True if the file has PUC Lua's core, by symbols, or by an error message of all versions. LuaJIT
 * has that message, too, and its own name. */
static bool has_core(struct elf_file *elf)
{
	static const char message[] = "attempt to compare two %s values";
	static const char jit[] = "LuaJIT 2.";
	uint64_t at, size;

	if (!elf_lookup(elf, "luaJIT_setmode", &at, &size))
		return false;
	if (!elf_lookup(elf, "lua_newstate", &at, &size))
		return true;
	return !has_text(elf, message, sizeof(message)) && has_text(elf, jit, sizeof(jit) - 1);
}

/*
 * Reads "Lua 5.4" (_VERSION, which ends there) and "Lua 5.4.6  Copyright (C)" (output of lua -v).
 * -ENOENT: no version, or two different ones.
 */
static int read_versions(struct elf_file *elf, struct release *r)
{
	static const char begin[] = "Lua 5.";
	const size_t len = sizeof(begin) - 1;
	uint64_t at = 0;
	unsigned i;
	int err = 0;

	for (i = 0; i < MAX_IDENTS; i++, at++) {
		char text[IDENT_BYTES + 1] = "", copyright[10] = "";
		unsigned minor, patch;

		err = elf_find_bytes(elf, at, begin, len, &at);
		if (err)
			break;
		if (elf_read(elf, at, text, IDENT_BYTES) && elf_read(elf, at, text, len + 2))
			continue;
		minor = (unsigned)(text[len] - '0');
		if (minor < 1 || minor > 5)
			continue;
		if (!text[len + 1]) {
			if (r->version && r->version != 50 + minor)
				return -ENOENT;
			r->version = 50 + minor;
		} else if (sscanf(text + len + 1, ".%2u %9s", &patch, copyright) == 2 &&
			   !strcmp(copyright, "Copyright")) {
			/* with its version, until they are compared; 0: banners differ */
			patch += 256 * minor;
			r->patch = r->patch == ANY_PATCH || r->patch == patch ? patch : 0;
		}
	}
	if (err == -EFBIG)
		return err;
	return r->version ? 0 : -ENOENT;
}

/* Texts of the core and its libraries: the releases that have them. */
static const struct era {
	uint8_t version, from, to;
	const char *text;
} eras[] = {
	{51, 0, 2, "cannot resume dead coroutine"},
	{51, 3, 5, "variables in assignment"},
	{52, 0, 0, "_LOADLIB"},
	{52, 1, 4, "no message"},
	{53, 0, 0, "function or expression too complex"},
	{53, 1, 6, "function or expression needs too many registers"},
	{53, 4, 6, "'__tostring' must return a string"},
	{54, 0, 2, "attempt to close non-closable variable '%s'"},
	{54, 3, UINT8_MAX, "invalid value (%s) at index %I in table for 'concat'"},
};

static void bound_release(struct elf_file *elf, struct release *r)
{
	size_t i;

	r->from = 0;
	r->to = ANY_PATCH;
	for (i = 0; i < sizeof(eras) / sizeof(eras[0]); i++) {
		const struct era *e = &eras[i];

		if (e->version != r->version || has_text(elf, e->text, strlen(e->text) + 1))
			continue;
		r->bounded = true;
		r->from = e->from > r->from ? e->from : r->from;
		r->to = e->to < r->to ? e->to : r->to;
	}
}

/* Finds the release of a file without lua_ident. */
static int find_version(struct elf_file *elf, struct release *r)
{
	int err;

	*r = (struct release){.patch = ANY_PATCH};
	err = read_versions(elf, r);
	if (err)
		return err;
	if (!has_core(elf))
		return elf_exceeded(elf) ? -EFBIG : -ENOENT;
	if (r->patch != ANY_PATCH && r->patch >> 8 == r->version - 50) {
		r->patch &= 255;
		r->source = "its banner";
		return 0;
	}
	r->patch = ANY_PATCH;
	r->source = "_VERSION";
	bound_release(elf, r);
	return 0;
}

static int find_release(struct elf_file *elf, struct release *r)
{
	static const char both[] = "Lua 5.", needle[] = "$Lua";
	uint64_t at = 0, size;
	unsigned i;
	int err;

	if (!elf_lookup(elf, "lua_ident", &at, &size) && ident_at(elf, at, r)) {
		r->source = "lua_ident";
		return 0;
	}
	/* the texts of all releases have it: most files have no Lua, and are searched once */
	err = has_text(elf, both, sizeof(both) - 1);
	if (err)
		return err;
	at = 0;
	for (i = 0; i < MAX_IDENTS; i++, at++) {
		err = elf_find_bytes(elf, at, needle, strlen(needle), &at);
		if (err == -EFBIG)
			return err;
		if (err)
			break;
		if (ident_at(elf, at, r)) {
			r->source = "its text";
			return 0;
		}
	}
	return find_version(elf, r);
}

/* True if it is Redis's 5.1, which adds lua_enablereadonlytable(), and a field to Table. */
static bool has_readonly_tables(struct elf_file *elf)
{
	static const char message[] = "Attempt to modify a readonly table";
	uint64_t at, size;

	return !elf_lookup(elf, "lua_enablereadonlytable", &at, &size) ||
	       !elf_find_bytes(elf, 0, message, strlen(message), &at);
}

static unsigned last_patch(unsigned version)
{
	unsigned last = 0;
	size_t i;

	for (i = 0; i < NROWS; i++)
		if (rows[i].puc.version == version && rows[i].last > last)
			last = rows[i].last;
	return last;
}

/* True if the row may be of this release. One newer than the last known may have its layout. */
static bool may_be(const struct puc_row *row, const struct release *r, unsigned flags)
{
	unsigned last = last_patch(r->version);
	unsigned patch = r->patch > last && r->patch != ANY_PATCH ? last : r->patch;

	if (row->puc.version != r->version || (row->puc.flags & PUC_TABLE_READONLY) != flags)
		return false;
	if (patch == ANY_PATCH)
		return r->from <= row->last && row->first <= r->to;
	return row->first <= patch && patch <= row->last;
}

/* ---- offsets in the code --------------------------------------------------------------------- */

/* An API function that uses a field, in versions `from` to `to`. */
struct claim {
	const char *function;
	uint8_t from, to;
	enum { OF_L, OF_G, OF_CI } of;
	const char *field;
	uint16_t offset; /* in struct puc_layout, of the field's offset */
	uint8_t width;
};
#define FIELD(f) #f, offsetof(struct puc_layout, f)

static const struct claim claims[] = {
	{"lua_status", 51, 55, OF_L, FIELD(L_status), 1},
	{"lua_atpanic", 51, 55, OF_L, FIELD(L_l_G), 8},
	{"lua_gettop", 51, 55, OF_L, FIELD(L_top), 8},
	{"lua_getstack", 51, 55, OF_L, FIELD(L_ci), 8},
	{"lua_getstack", 51, 51, OF_L, FIELD(L_base_ci), 8},
	{"lua_getstack", 52, 55, OF_L, FIELD(L_base_ci), PUC_ADDRESS},
	{"lua_pushthread", 51, 54, OF_G, FIELD(g_mainthread), 8},
	{"lua_pushthread", 55, 55, OF_G, FIELD(g_mainthread), PUC_ADDRESS},
	{"lua_checkstack", 51, 55, OF_L, FIELD(L_stack_last), 8},
	{"lua_gethookmask", 51, 51, OF_L, FIELD(L_hookmask), 1},
	{"lua_resume", 51, 53, OF_L, FIELD(L_nCcalls), 2},
	{"lua_resume", 54, 55, OF_L, FIELD(L_nCcalls), 4},
	{"lua_getmetatable", 51, 55, OF_G, FIELD(g_registry), PUC_ADDRESS},
	{"lua_getstack", 51, 51, OF_CI, FIELD(ci_func), 8},
	{"lua_getstack", 51, 51, OF_CI, FIELD(ci_callstatus), 4},
	{"lua_gettop", 52, 55, OF_CI, FIELD(ci_func), 8},
	{"lua_getstack", 52, 55, OF_CI, FIELD(ci_previous), 8},
	{"lua_sethook", 52, 53, OF_CI, FIELD(ci_savedpc), 8},
	{"lua_sethook", 52, 54, OF_CI, FIELD(ci_callstatus), 1},
};
#define NCLAIMS (sizeof(claims) / sizeof(claims[0]))

struct evidence {
	struct elf_file *elf;
	const struct puc_layout *puc;
	unsigned agree, differ;
	unsigned inside; /* agreeing offsets of structs that puc_structs_used() finds */
	struct text found, wrong;
};

static void evidence_free(struct evidence *e)
{
	text_free(&e->found);
	text_free(&e->wrong);
}

static uint16_t field_of(const struct puc_layout *puc, uint16_t offset)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)puc + offset, sizeof(v));
	return v;
}

/* True if a fact is of the claim's struct, with the field's width. */
static bool concerns(const struct evidence *e, const struct puc_fact *f, const struct claim *c)
{
	if (f->width != c->width)
		return false;
	if (c->of == OF_L)
		return f->path.depth == 1;
	return f->path.depth == 2 && f->path.d[0] == (c->of == OF_G ? e->puc->L_l_G : e->puc->L_ci);
}

static void note(struct evidence *e, const char *function, const char *field, uint16_t is,
		 uint16_t should)
{
	if (is == should) {
		text_printf(&e->found, "%s%s %u", e->agree++ ? ", " : "", strchr(field, '_') + 1,
			    is);
		return;
	}
	text_printf(&e->wrong, "%s%s uses %u where %s is %u", e->differ++ ? "; " : "", function, is,
		    field, should);
}

/* Checks a claim. A function without such an access is no evidence: it may have a cold part. */
static void check(struct evidence *e, const struct claim *c)
{
	uint16_t should = field_of(e->puc, c->offset), other = 0;
	uint8_t code[PUC_API_TEXT];
	struct puc_fact facts[PUC_FACTS];
	uint64_t start, size;
	size_t n, i;
	bool any = false;

	if (elf_lookup(e->elf, c->function, &start, &size))
		return;
	if (!size || size > sizeof(code))
		size = sizeof(code);
	if (elf_read(e->elf, start, code, size))
		return;
	n = puc_api_facts(code, size, facts);
	for (i = 0; i < n; i++) {
		if (!concerns(e, &facts[i], c))
			continue;
		if (facts[i].at == should) {
			note(e, c->function, c->field, should, should);
			return;
		}
		other = any ? other : facts[i].at;
		any = true;
	}
	if (any)
		note(e, c->function, c->field, other, should);
}

static void check_claims(struct evidence *e)
{
	size_t i;

	for (i = 0; i < NCLAIMS; i++)
		if (claims[i].from <= e->puc->version && e->puc->version <= claims[i].to)
			check(e, &claims[i]);
}

static void check_use(void *arg, const struct puc_struct_use *use)
{
	struct evidence *e = arg;

	if (use->known) {
		e->inside++;
		return;
	}
	text_printf(&e->wrong, "%s%s uses ", e->differ++ ? "; " : "", use->function);
	if (use->width)
		text_printf(&e->wrong, "%u bytes at ", use->width);
	text_printf(&e->wrong, "%u of %s, where no field is known", use->at, use->name);
}

/* ---- luaV_execute, the collector ------------------------------------------------------------- */

static struct puc_vm_wanted wanted(const struct puc_layout *puc)
{
	static const uint8_t num_opcodes[] = {38, 40, 47, 83, 85}; /* lopcodes.h */

	return (struct puc_vm_wanted){
		.opcode_mask = puc->version <= 53 ? 0x3f : 0x7f, /* SIZE_OP 6, 7 */
		.opcode_limit = num_opcodes[puc->version - 51],
		.savedpc = puc->version == 51 ? puc->L_savedpc : puc->ci_savedpc,
	};
}

/* True if it imports glibc's _setjmp: LUAI_TRY (ldo.c) in C builds. False of static files. */
static bool wants_glibc_setjmp(struct elf_file *elf)
{
	static const char glibc[] = "GLIBC_2."; /* a version of an imported symbol */
	uint64_t at;

	return elf_wants(elf, "_setjmp") && !elf_find_bytes(elf, 0, glibc, sizeof(glibc) - 1, &at);
}

static void set_pc(const struct elf_puc_vm *vm, struct puc_build *build)
{
	build->pc_reg = vm->pc_reg;
	build->fetch_reg = vm->fetch_reg;
	memcpy(build->fetch, vm->fetch, sizeof(build->fetch));
}

static int find_vm(struct evidence *e, struct vm_build *b)
{
	const char *field = e->puc->version == 51 ? "L_savedpc" : "ci_savedpc";
	struct puc_vm_wanted w = wanted(e->puc);
	struct elf_puc_vm vm;
	int err = elf_find_puc_vm(e->elf, &w, &vm);

	if (err)
		return err;
	if (vm.saves)
		note(e, "luaV_execute", field, w.savedpc, w.savedpc);
	else
		note(e, "luaV_execute", field, vm.elsewhere, w.savedpc);
	b->start = vm.start;
	b->size = vm.size;
	b->build.puc.pc_reg = PUC_NO_REG;
	if (e->puc->flags & PUC_SAVEDPC_EXACT)
		return 0;
	if (vm.local == vm.fetches)
		return -EADDRNOTAVAIL;
	set_pc(&vm, &b->build.puc);
	return 0;
}

static void find_collector(const struct call_graph *calls, uint64_t collectgarbage,
			   struct vm_build *b)
{
	uint64_t lua_gc, size;
	struct elf_puc_gc gc;

	if ((elf_lookup(calls->elf, "lua_gc", &lua_gc, &size) ||
	     elf_puc_collector(calls, lua_gc, &gc)) &&
	    (!collectgarbage || elf_puc_collector_by(calls, collectgarbage, b->start, &gc)))
		return;
	b->gc_lo = gc.lo;
	b->gc_hi = gc.hi;
	if (gc.skip_lo) {
		b->build.puc.gc_skip = (uint32_t)(gc.skip_lo - gc.lo);
		b->build.puc.gc_skip_size = (uint32_t)(gc.skip_hi - gc.skip_lo);
	}
}

static void add_no_resume(struct puc_stdlib *stdlib, int32_t function)
{
	uint32_t i, slot = puc_no_resume_index(function);

	for (i = 0; i < PUC_NO_RESUME_PROBES; i++) {
		int32_t *entry = &stdlib->no_resume[(slot + i) & (PUC_NO_RESUME - 1)];

		if (!*entry || *entry == function) {
			*entry = function;
			return;
		}
	} /* no free slot: it counts as the host's */
}

/* Returns the address of collectgarbage; 0: not found. */
static uint64_t find_library(const struct call_graph *calls, struct vm_build *b)
{
	struct elf_puc_lib *lib __free = malloc(sizeof(*lib));
	uint32_t i;

	if (!lib || elf_puc_library(calls, lib))
		return 0;
	for (i = 0; i < lib->n; i++)
		add_no_resume(&b->build.stdlib, (int32_t)(lib->no_resume[i] - b->start));
	b->build.stdlib.resume = lib->resume ? (int32_t)(lib->resume - b->start) : 0;
	b->build.stdlib.wrap = lib->wrap ? (int32_t)(lib->wrap - b->start) : 0;
	return lib->collectgarbage;
}

static void find_api_callers(const struct call_graph *calls, struct vm_build *b)
{
	struct elf_text text[PUC_API_CALLERS];
	size_t n, i;

	if (elf_puc_api_callers(calls, text, PUC_API_CALLERS, &n))
		return;
	for (i = 0; i < n; i++)
		b->build.stdlib.api_caller[i] = (struct puc_stretch){
			(int32_t)(text[i].start - b->start),
			(uint32_t)text[i].size,
		};
}

/* Finds the parts that are optional: a file without them can be profiled, too. */
static void find_by_calls(struct elf_file *elf, struct vm_build *b)
{
	struct call_graph calls __cleanup(call_graph_free) = {};

	if (call_graph_build(elf, b->start, PUC_WINDOW, &calls))
		return;
	find_collector(&calls, find_library(&calls, b), b);
	find_api_callers(&calls, b);
}

static void describe(const struct release *r, char text[32])
{
	if (r->patch == ANY_PATCH)
		snprintf(text, 32, "%u.%u", r->version / 10, r->version % 10);
	else
		snprintf(text, 32, "%u.%u.%u", r->version / 10, r->version % 10, r->patch);
}

static void name_release(const struct release *r, struct vm_build *b)
{
	char release[32];

	describe(r, release);
	if (r->patch == ANY_PATCH)
		snprintf(b->release, sizeof(b->release), "%s", b->name);
	else
		snprintf(b->release, sizeof(b->release), "PUC Lua %s%s", release,
			 b->build.puc.puc.flags & PUC_TABLE_READONLY ? " of Redis" : "");
}

/* Formats the evidence for messages, cut to the items that fit. */
static void summarize(const struct release *r, const struct evidence *e, char *text, size_t size)
{
	char release[32];
	int n;

	describe(r, release);
	n = snprintf(text, size, "%s says %s%s; %u offsets agree: %s", r->source, release,
		     r->patch != ANY_PATCH && r->patch > last_patch(r->version)
			     ? ", newer than known"
			     : "",
		     e->agree, text_str(&e->found));
	if (n < (int)size)
		return;
	for (size -= sizeof("..."); size && text[size] != ','; size--)
		; /* back to the end of an item */
	memcpy(text + size, "...", sizeof("..."));
}

/* Returns 0 if the row agrees; 1 if not: e has the differences. */
static int try_row(struct evidence *e, const struct puc_row *row, struct vm_build *b)
{
	int err;

	*b = (struct vm_build){};
	snprintf(b->name, sizeof(b->name), "%s", row->name);
	b->build.family = LB_FAMILY_PUC;
	b->build.puc.puc = row->puc;
	e->puc = &row->puc;
	err = find_vm(e, b);
	check_claims(e);
	puc_structs_used(e->elf, e->puc, check_use, e);
	if (e->inside)
		text_printf(&e->found, "; %u more in functions, strings and tables", e->inside);
	if (text_err(&e->found) || text_err(&e->wrong))
		return -ENOMEM;
	return err ? err : e->differ != 0;
}

static int refuse(struct error *err, const struct release *r, const struct evidence *e, int why)
{
	char release[32];

	describe(r, release);
	if (!why)
		return error_set(err, -ENOTSUP, "PUC Lua %s (%s): this release is not known",
				 release, r->source);
	if (why == -ENOENT && elf_lacks_fdes(e->elf))
		return error_set(err, -ENOTSUP,
				 "PUC Lua %s (%s): the file lacks call frame information "
				 "(.eh_frame), by which its functions are found",
				 release, r->source);
	if (why == -ENOENT)
		return error_set(err, -ENOTSUP,
				 "PUC Lua %s (%s): no function has the shape of luaV_execute",
				 release, r->source);
	if (why == -EADDRNOTAVAIL)
		return error_set(
			err, -ENOTSUP,
			"PUC Lua %s (%s) was compiled without optimisation: which line runs "
			"is in no register; compile it with -O1 or more",
			release, r->source);
	return error_set(err, -ENOTSUP, "PUC Lua %s (%s) of an unknown layout: %s; %s%s", release,
			 r->source, text_str(&e->wrong),
			 e->agree ? "what agrees: " : "nothing agrees", text_str(&e->found));
}

/* Agreeing offsets that prove the layout of an unknown release; one if texts bound the release. */
#define PROOF 8

static bool is_proved(const struct release *r, struct evidence *e)
{
	if (r->patch <= last_patch(r->version) || e->agree >= PROOF)
		return true;
	if (r->patch == ANY_PATCH && r->bounded && e->agree)
		return true;
	text_puts(&e->wrong, "no text has its release, and too few functions show offsets");
	return false;
}

/* True if the layouts differ in tables alone, as those of 5.2.3 and 5.2.4 do: no text distinguishes these, and a table that is
 * read by the other's layout has no names. */
static bool differ_in_tables(const struct puc_layout *a, const struct puc_layout *b)
{
	struct puc_layout both = *b;

	both.t_lsizenode = a->t_lsizenode;
	both.t_metatable = a->t_metatable;
	both.t_array = a->t_array;
	both.t_node = a->t_node;
	both.t_sizearray = a->t_sizearray;
	return !memcmp(a, &both, sizeof(both));
}

int puc_recognise(struct elf_file *elf, struct vm_build *out, struct error *err)
{
	struct vm_build b, found = {};
	unsigned readonly;
	struct release r;
	int failed;
	size_t i;

	failed = find_release(elf, &r);
	if (failed == -EFBIG)
		return error_set(err, -ENOTSUP,
				 "whether it holds a PUC Lua is not known: it is too large to be "
				 "searched (the bound on work for %s is reached)",
				 elf_exceeded(elf));
	if (failed)
		return -ENOENT;
	readonly = r.version == 51 && has_readonly_tables(elf) ? PUC_TABLE_READONLY : 0;
	for (i = 0; i < NROWS; i++) {
		struct evidence e __cleanup(evidence_free) = {.elf = elf};
		int why;

		if (!may_be(&rows[i], &r, readonly))
			continue;
		why = try_row(&e, &rows[i], &b);
		if (why == -ENOMEM)
			return why;
		if (!why && !is_proved(&r, &e))
			why = 1;
		if (why) {
			failed = refuse(err, &r, &e, why);
			continue;
		}
		if (*found.name && !differ_in_tables(&found.build.puc.puc, &b.build.puc.puc))
			return error_set(err, -ENOTSUP,
					 "PUC Lua of unknown release: both \"%s\" and \"%s\" "
					 "agree with its code",
					 found.name, rows[i].name);
		name_release(&r, &b);
		summarize(&r, &e, b.evidence, sizeof(b.evidence));
		found = b;
	}
	if (!*found.name)
		return failed ? failed : refuse(err, &r, NULL, 0);
	find_by_calls(elf, &found);
	found.build.puc.jmp_marked = wants_glibc_setjmp(elf);
	*out = found;
	return 0;
}

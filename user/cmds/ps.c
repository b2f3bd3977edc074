// SPDX-License-Identifier: BSD-2-Clause
/* ps: the processes that run Lua, as a table or as JSON, on standard output. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/array.h"
#include "base/caps.h"
#include "base/cleanup.h"
#include "base/outfile.h"
#include "base/text.h"
#include "base/uses.h"
#include "cmds.h"
#include "narrow.h"
#include "doctor/ps.h"

#define ALL SIZE_MAX

static void put_user(uid_t uid, struct text *out)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		text_put_utf8(out, pw->pw_name, strlen(pw->pw_name));
	else
		text_printf(out, "%u", (unsigned)uid);
}

/* Its VMs, each release once. */
static void put_vm(const struct ps_process *p, struct text *out)
{
	for (size_t i = 0; i < p->nvms; i++) {
		const char *release = p->vms[i].build->release;
		size_t before = 0;

		while (before < i && strcmp(p->vms[before].build->release, release))
			before++;
		if (before == i)
			text_printf(out, "%s%s", i ? ", " : "", release);
	}
}

/* "on", "off", "mixed" of several VMs; "": there is no VM of LuaJIT. module: of this file's; ALL. */
static const char *jit_state(const struct ps_process *p, size_t module)
{
	const struct vm_states *s = &p->states;
	bool on = false, off = false;

	for (size_t i = 0; i < s->n && i < VM_STATES; i++) {
		if ((module != ALL && s->at[i].module != module) ||
		    !lb_is_luajit(p->vms[s->at[i].module].at.family))
			continue;
		on |= s->at[i].jit;
		off |= !s->at[i].jit;
	}
	return on && off ? "mixed" : on ? "on" : off ? "off" : "";
}

/* Three digits, "812K", "1.2M", "45M". */
static void put_memory(uint64_t bytes, struct text *out)
{
	static const char units[] = "KMGTPE";
	double n = (double)bytes / 1024;
	size_t unit = 0;

	while (n >= 999.5) {
		n /= 1024;
		unit++;
	}
	text_printf(out, n < 9.95 && unit ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

/* ---- table ----------------------------------------------------------------------------------- */

enum column { PID, USER, VM, JIT, VMS, MEMORY, THREADS, CONTAINER, COMMAND, COLUMNS };

static const struct {
	const char *head;
	bool to_right;
} columns[COLUMNS] = {
	[PID] = {"PID", true},		[USER] = {"USER", false},
	[VM] = {"VM", false},		[JIT] = {"JIT", false},
	[VMS] = {"VMS", true},		[MEMORY] = {"MEMORY", true},
	[THREADS] = {"THREADS", true},	[CONTAINER] = {"CONTAINER", false},
	[COMMAND] = {"COMMAND", false},
};

struct ps_row {
	struct text cell[COLUMNS];
	struct text problem;
};

struct table {
	struct ps_row *rows;
	size_t n;
};

static void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		for (size_t c = 0; c < COLUMNS; c++)
			text_free(&t->rows[i].cell[c]);
		text_free(&t->rows[i].problem);
	}
	free(t->rows);
}

static int add_row(void *arg, const struct ps_process *p)
{
	struct table *t = arg;
	struct ps_row *row;
	int err;

	if (array_grow(&t->rows, t->n, sizeof(*t->rows)))
		return -ENOMEM;
	row = &t->rows[t->n++];
	*row = (struct ps_row){};
	text_printf(&row->cell[PID], "%d", (int)p->pid);
	put_user(p->uid, &row->cell[USER]);
	put_vm(p, &row->cell[VM]);
	text_puts(&row->cell[JIT], jit_state(p, ALL));
	if (p->nvms)
		text_printf(&row->cell[VMS], "%zu%s", p->states.n, p->states.complete ? "" : "+");
	if (p->states.n)
		put_memory(p->states.memory, &row->cell[MEMORY]);
	text_printf(&row->cell[THREADS], "%zu", p->threads);
	cgroup_put(&p->cgroup, &row->cell[CONTAINER]);
	text_put_utf8(&row->cell[COMMAND], p->command, strlen(p->command));
	text_put_utf8(&row->problem, p->problem.what, strlen(p->problem.what));
	err = text_err(&row->problem);
	for (size_t c = 0; c < COLUMNS && !err; c++)
		err = text_err(&row->cell[c]);
	return err;
}

static const char *cell(const struct table *t, size_t row, enum column column)
{
	const char *text = row ? text_str(&t->rows[row - 1].cell[column]) : columns[column].head;

	return *text ? text : column == VM ? "unknown" : "-";
}

/* Characters of UTF-8. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void print_table(const struct table *t, FILE *to)
{
	size_t widths[COLUMNS] = {};

	for (size_t row = 0; row <= t->n; row++)
		for (size_t c = 0; c < COLUMNS; c++)
			if (width(cell(t, row, c)) > widths[c])
				widths[c] = width(cell(t, row, c));
	for (size_t row = 0; row <= t->n; row++) {
		for (size_t c = 0; c < COLUMNS; c++) {
			const char *text = cell(t, row, c);
			int pad = c == COMMAND ? 0 : (int)(widths[c] - width(text));
			bool to_right = columns[c].to_right;

			fprintf(to, "%*s%s%*s%s", to_right ? pad : 0, "", text, to_right ? 0 : pad,
				"", c == COMMAND ? "\n" : "  ");
		}
		if (row && t->rows[row - 1].problem.len)
			fprintf(to, "%*s  %s\n", (int)widths[PID], "",
				text_str(&t->rows[row - 1].problem));
	}
}

static int table(FILE *to, const struct narrow *narrow, size_t *refused, struct error *err)
{
	__cleanup(table_free) struct table t = {};
	int r = ps_each(narrow, add_row, &t, refused, err);

	if (!r)
		print_table(&t, to);
	return r;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* All set `bad` when memory is short. */
struct object {
	cJSON *json;
	bool bad;
};

/* null for no text. */
static void add_text(struct object *o, const char *name, const char *foreign)
{
	__text struct text clean = {0};

	text_put_utf8(&clean, foreign, strlen(foreign));
	o->bad |= text_err(&clean) ||
		  !(*foreign ? cJSON_AddStringToObject(o->json, name, text_str(&clean))
			     : cJSON_AddNullToObject(o->json, name));
}

static void add_number(struct object *o, const char *name, double value)
{
	o->bad |= !cJSON_AddNumberToObject(o->json, name, value);
}

/* Owns the item in any case. */
static void add_item(struct object *o, const char *name, cJSON *item)
{
	if (item && cJSON_AddItemToObject(o->json, name, item))
		return;
	cJSON_Delete(item);
	o->bad = true;
}

/* A number of JSON may be a double, which holds no address of 64 bits. */
static void add_range(struct object *o, const char *name, uint64_t start, uint64_t end)
{
	char text[2][24];
	const char *const words[] = {text[0], text[1]};

	snprintf(text[0], sizeof(text[0]), "0x%" PRIx64, start);
	snprintf(text[1], sizeof(text[1]), "0x%" PRIx64, end);
	add_item(o, name, start ? cJSON_CreateStringArray(words, 2) : cJSON_CreateNull());
}

static void add_bool(struct object *o, const char *name, bool value)
{
	o->bad |= !cJSON_AddBoolToObject(o->json, name, value);
}

static cJSON *state_json(const struct vm_state *s, bool has_jit)
{
	struct object o = {.json = cJSON_CreateObject()};
	char address[24];

	snprintf(address, sizeof(address), "0x%" PRIx64, s->g);
	add_text(&o, "global_state", address);
	add_number(&o, "memory", (double)s->memory);
	if (has_jit)
		add_bool(&o, "jit", s->jit);
	if (!o.bad)
		return o.json;
	cJSON_Delete(o.json);
	return NULL;
}

/* Of the VMs that this file has; as many as VM_STATES. */
static void add_states(struct object *o, const struct ps_process *p, size_t module)
{
	bool has_jit = lb_is_luajit(p->vms[module].at.family);
	cJSON *states = cJSON_CreateArray();

	for (size_t i = 0; i < p->states.n && i < VM_STATES; i++) {
		cJSON *one;

		if (p->states.at[i].module != module)
			continue;
		one = state_json(&p->states.at[i], has_jit);
		o->bad |= !one || !cJSON_AddItemToArray(states, one);
	}
	add_item(o, "states", states);
}

static cJSON *vm_json(const struct ps_process *p, size_t module)
{
	const struct ps_vm *vm = &p->vms[module];
	struct object o = {.json = cJSON_CreateObject()};

	add_text(&o, "release", vm->build->release);
	add_text(&o, "family", lb_is_luajit(vm->at.family) ? "LuaJIT" : "PUC Lua");
	add_text(&o, "layout", vm->build->name);
	add_text(&o, "file", vm->path);
	add_range(&o, "interpreter", vm->at.vm_start, vm->at.vm_end);
	add_range(&o, "collector", vm->at.gc_lo, vm->at.gc_hi);
	add_text(&o, "evidence", vm->build->evidence);
	add_text(&o, "jit", jit_state(p, module));
	add_states(&o, p, module);
	if (!o.bad)
		return o.json;
	cJSON_Delete(o.json);
	return NULL;
}

static cJSON *process_json(const struct ps_process *p)
{
	struct object o = {.json = cJSON_CreateObject()};
	__text struct text user = {0}, vm = {0}, container = {0};
	cJSON *vms = cJSON_CreateArray();

	put_user(p->uid, &user);
	put_vm(p, &vm);
	cgroup_put(&p->cgroup, &container);
	add_number(&o, "pid", p->pid);
	add_text(&o, "user", text_str(&user));
	add_number(&o, "uid", p->uid);
	add_text(&o, "vm", text_str(&vm));
	add_text(&o, "jit", jit_state(p, ALL));
	add_number(&o, "vm_count", (double)p->states.n);
	add_bool(&o, "vm_count_complete", p->states.complete);
	add_number(&o, "memory", (double)p->states.memory);
	add_number(&o, "threads", (double)p->threads);
	add_text(&o, "container", text_str(&container));
	add_text(&o, "container_id", p->cgroup.runtime ? p->cgroup.id : "");
	add_text(&o, "pod", p->cgroup.pod);
	add_text(&o, "cgroup", p->cgroup.path);
	add_text(&o, "command", p->command);
	for (size_t i = 0; i < p->nvms; i++) {
		cJSON *one = vm_json(p, i);

		o.bad |= !one || !cJSON_AddItemToArray(vms, one);
	}
	add_item(&o, "vms", vms);
	add_text(&o, "problem", p->problem.what);
	if (!o.bad && !text_err(&user) && !text_err(&vm) && !text_err(&container))
		return o.json;
	cJSON_Delete(o.json);
	return NULL;
}

static int add_json(void *arg, const struct ps_process *p)
{
	cJSON *one = process_json(p);

	if (one && cJSON_AddItemToArray(arg, one))
		return 0;
	cJSON_Delete(one);
	return -ENOMEM;
}

static int json(FILE *to, const struct narrow *narrow, size_t *refused, struct error *err)
{
	cJSON *all = cJSON_CreateArray();
	char *text = NULL;
	int r = all ? ps_each(narrow, add_json, all, refused, err) : -ENOMEM;

	if (!r)
		text = cJSON_Print(all);
	if (!r && !text)
		r = -ENOMEM;
	cJSON_Delete(all);
	if (text)
		fprintf(to, "%s\n", text);
	cJSON_free(text);
	return r;
}

/* ---------------------------------------------------------------------------------------------- */

static void say_refused(size_t n)
{
	const char *why = caps_missing(CAPS_SYS_PTRACE | CAPS_FILES)
				  ? "run as root (sudo luabpf ps)"
			  : caps_in_container() ? "run luabpf as root of the host"
						: "the kernel or a security module forbids it";

	if (n)
		fprintf(stderr, "luabpf: %zu process%s could not be looked into: %s\n", n,
			n == 1 ? "" : "es", why);
}

int cmd_ps(const struct options *opts)
{
	__outfile struct outfile *out = NULL;
	__cleanup(narrow_free) struct narrow narrow = {};
	struct error err = {};
	size_t refused = 0;
	int r = narrow_of_options(opts, &narrow, &err);

	if (!r)
		r = outfile_open("-", &out, &err);
	caps_more_files();
	if (!r)
		r = caps_keep(USE_TARGETS, &err);
	if (!r)
		r = (opts->json ? json : table)(outfile_stream(out), &narrow, &refused, &err);
	if (r && !*err.what)
		error_set(&err, r, "%s", r == -ENOMEM ? "out of memory" : strerror(-r));
	if (!r)
		r = outfile_commit(&out, &err);
	if (r) {
		cmd_error(r, &err);
		return EXIT_FAILED;
	}
	say_refused(refused);
	return EXIT_DONE;
}

// SPDX-License-Identifier: BSD-2-Clause
/* ps: the processes that run Lua, as a table or as JSON, on standard output. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/grid.h"
#include "base/json.h"
#include "base/outfile.h"
#include "base/text.h"
#include "base/uses.h"
#include "cmds.h"
#include "narrow.h"
#include "doctor/doctor.h"
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

static const struct grid_column columns[COLUMNS] = {
	[PID] = {"PID", true, "-"},	     [USER] = {"USER", false, "-"},
	[VM] = {"VM", false, "unknown"},     [JIT] = {"JIT", false, "-"},
	[VMS] = {"VMS", true, "-"},	     [MEMORY] = {"MEMORY", true, "-"},
	[THREADS] = {"THREADS", true, "-"},  [CONTAINER] = {"CONTAINER", false, "-"},
	[COMMAND] = {"COMMAND", false, "-"},
};

struct table {
	struct grid grid;
	bool verbose;
};

/* -v: what was measured of each of its VMs, on a line of its own. */
static void put_measured(const struct ps_process *p, struct text *out)
{
	for (size_t i = 0; i < p->nvms; i++) {
		const struct ps_vm *vm = &p->vms[i];
		const struct doctor_module m = {
			.build = vm->build, .at = &vm->at, .path = vm->path};

		text_puts(out, out->len ? "\n" : "");
		doctor_module_text(&m, out);
	}
}

static int add_row(void *arg, const struct ps_process *p)
{
	struct table *table = arg;
	struct grid *grid = &table->grid;
	struct text *cell = grid_add(grid);

	if (!cell)
		return -ENOMEM;
	text_printf(&cell[PID], "%d", (int)p->pid);
	put_user(p->uid, &cell[USER]);
	put_vm(p, &cell[VM]);
	text_puts(&cell[JIT], jit_state(p, ALL));
	if (p->nvms)
		text_printf(&cell[VMS], "%zu%s", p->states.n, p->states.complete ? "" : "+");
	if (p->states.n)
		put_memory(p->states.memory, &cell[MEMORY]);
	text_printf(&cell[THREADS], "%zu", p->threads);
	cgroup_put(&p->cgroup, &cell[CONTAINER]);
	text_put_utf8(&cell[COMMAND], p->command, strlen(p->command));
	text_put_utf8(&cell[COLUMNS], p->problem.what, strlen(p->problem.what));
	if (table->verbose)
		put_measured(p, &cell[COLUMNS]);
	return grid_err(grid);
}

static int print_table(FILE *to, const struct narrow *narrow, bool verbose, size_t *refused,
		       struct error *err)
{
	struct table t = {.grid = {.columns = columns, .ncolumns = COLUMNS}, .verbose = verbose};
	int r = ps_each(narrow, add_row, &t, refused, err);

	if (!r)
		grid_print(&t.grid, 0, to);
	grid_free(&t.grid);
	return r;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_range(struct json *o, const char *name, uint64_t start, uint64_t end)
{
	char text[2][24];
	const char *const words[] = {text[0], text[1]};

	snprintf(text[0], sizeof(text[0]), "0x%" PRIx64, start);
	snprintf(text[1], sizeof(text[1]), "0x%" PRIx64, end);
	json_item(o, name, start ? cJSON_CreateStringArray(words, 2) : cJSON_CreateNull());
}

static cJSON *state_json(const struct vm_state *s, bool has_jit)
{
	struct json o = json_object();

	json_address(&o, "global_state", s->g);
	json_number(&o, "memory", (double)s->memory);
	if (has_jit)
		json_bool(&o, "jit", s->jit);
	return json_take(&o);
}

/* Adds the VMs of this file, VM_STATES at most. */
static void add_states(struct json *o, const struct ps_process *p, size_t module)
{
	bool has_jit = lb_is_luajit(p->vms[module].at.family);
	struct json states = json_array();

	for (size_t i = 0; i < p->states.n && i < VM_STATES; i++) {
		if (p->states.at[i].module == module)
			json_append(&states, state_json(&p->states.at[i], has_jit));
	}
	json_item(o, "states", json_take(&states));
}

static cJSON *vm_json(const struct ps_process *p, size_t module)
{
	const struct ps_vm *vm = &p->vms[module];
	struct json o = json_object();

	json_text(&o, "release", vm->build->release);
	json_text(&o, "family", lb_is_luajit(vm->at.family) ? "LuaJIT" : "PUC Lua");
	json_text(&o, "layout", vm->build->name);
	json_text(&o, "file", vm->path);
	add_range(&o, "interpreter", vm->at.vm_start, vm->at.vm_end);
	add_range(&o, "collector", vm->at.gc_lo, vm->at.gc_hi);
	json_text(&o, "evidence", vm->build->evidence);
	json_text(&o, "jit", jit_state(p, module));
	add_states(&o, p, module);
	return json_take(&o);
}

static cJSON *process_json(const struct ps_process *p)
{
	struct json o = json_object();
	__text struct text user = {0}, vm = {0}, container = {0};
	struct json vms = json_array();

	put_user(p->uid, &user);
	put_vm(p, &vm);
	cgroup_put(&p->cgroup, &container);
	json_number(&o, "pid", p->pid);
	json_text(&o, "user", text_str(&user));
	json_number(&o, "uid", p->uid);
	json_text(&o, "vm", text_str(&vm));
	json_text(&o, "jit", jit_state(p, ALL));
	json_number(&o, "vm_count", (double)p->states.n);
	json_bool(&o, "vm_count_complete", p->states.complete);
	json_number(&o, "memory", (double)p->states.memory);
	json_number(&o, "threads", (double)p->threads);
	json_text(&o, "container", text_str(&container));
	json_text(&o, "container_id", p->cgroup.runtime ? p->cgroup.id : "");
	json_text(&o, "pod", p->cgroup.pod);
	json_text(&o, "cgroup", p->cgroup.path);
	json_text(&o, "command", p->command);
	for (size_t i = 0; i < p->nvms; i++)
		json_append(&vms, vm_json(p, i));
	json_item(&o, "vms", json_take(&vms));
	json_text(&o, "problem", p->problem.what);
	o.bad |= text_err(&user) || text_err(&vm) || text_err(&container);
	return json_take(&o);
}

static int add_json(void *arg, const struct ps_process *p)
{
	struct json *all = arg;

	json_append(all, process_json(p));
	return all->bad ? -ENOMEM : 0;
}

static int print_json(FILE *to, const struct narrow *narrow, size_t *refused, struct error *err)
{
	struct json all = json_array();
	int r = ps_each(narrow, add_json, &all, refused, err);

	all.bad |= r != 0;
	return r ? (json_take(&all), r) : json_print(json_take(&all), to);
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
		r = opts->json ? print_json(outfile_stream(out), &narrow, &refused, &err)
			       : print_table(outfile_stream(out), &narrow, opts->verbose, &refused,
					     &err);
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

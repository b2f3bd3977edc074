/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The breadth-first search of lua/modules.h in LuaJIT's tables.
 */
#include "loaded.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "base/cleanup.h"
#include "lua/foreign.h"
#include "table.h"
#include "lua/modules.h"

#define FIRST_READ 56 /* bytes of a string: head and text of most names */

struct lj_loaded_walk {
	const struct lb_mem *mem;
	lj_loaded_fn fn;
	void *arg;
	const struct lj_layout *lj;
	uint32_t visits, max_visits;
	uint32_t max_inner;	/* tables that are followed in one table */
	struct module *modules; /* by ref; in order of discovery */
	uint64_t globals;	/* functions' usual environment */
};

/* Called for each node with a string key whose value is a table or a function. A nonzero return
 * ends the walk. */
typedef int (*node_fn)(struct lj_loaded_walk *w, const char *key, uint64_t val, void *arg);

/* Copies a short string without NULs, as names are. Most take one read. */
static int read_name(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t ref,
		     char name[MODULES_MAX_NAME])
{
	uint8_t bytes[FIRST_READ];
	uint32_t len, text = lj_str_text(lj), have = sizeof(bytes) - text;

	if (!foreign_plausible(ref))
		return -EBADMSG;
	if (mem_read(mem, bytes, sizeof(bytes), ref)) {
		if (mem_read(mem, bytes, text, ref))
			return -EFAULT;
		have = 0;
	}
	len = foreign_half(bytes, lj->str_len);
	if (bytes[LJ_OFF(lj, STR_GCT)] != LJ_GCT_STR || len >= MODULES_MAX_NAME)
		return -EBADMSG;
	if (len <= have)
		memcpy(name, bytes + text, len);
	else if (mem_read(mem, name, len, ref + text))
		return -EFAULT;
	name[len] = '\0';
	return strlen(name) == len ? 0 : -EBADMSG;
}

/* True for a function or a table under a string key. Counts tables. */
static bool wanted(const struct lj_loaded_walk *w, const struct lj_node *node, uint32_t *tables)
{
	if (LJ_TV_TYPE(node->key) != LJ_TSTR)
		return false;
	if (LJ_TV_TYPE(node->val) == LJ_TTAB)
		return ++*tables <= w->max_inner;
	return LJ_TV_TYPE(node->val) == LJ_TFUNC;
}

static int each_node(struct lj_loaded_walk *w, const struct lj_table *t, node_fn fn, void *arg)
{
	struct lj_node nodes[LJ_TABLE_CHUNK];
	uint32_t first, inner = 0;
	int n, i;

	for (first = 0; first < t->nnodes; first += LJ_TABLE_CHUNK) {
		n = lj_table_nodes(w->mem, t, first, nodes);
		if (n < 0)
			return 0;
		for (i = 0; i < n; i++) {
			char key[MODULES_MAX_NAME];
			int stop;

			if (w->visits++ >= w->max_visits)
				return 0;
			if (!wanted(w, &nodes[i], &inner) ||
			    read_name(w->mem, w->lj, LJ_TV_GCPTR(nodes[i].key), key))
				continue;
			stop = fn(w, key, nodes[i].val, arg);
			if (stop)
				return stop;
		}
	}
	return 0;
}

struct lj_loaded_find {
	const char *key;
	uint64_t val;
};

static int find_node(struct lj_loaded_walk *w, const char *key, uint64_t val, void *arg)
{
	struct lj_loaded_find *f = arg;

	(void)w;
	if (strcmp(key, f->key) != 0)
		return 0;
	f->val = val;
	return 1;
}

/* Finds a table in a table. Returns false if it is not there. */
static bool get_table(struct lj_loaded_walk *w, const struct lj_table *t, const char *key,
		      struct lj_table *sub, uint64_t *ref)
{
	struct lj_loaded_find f = {.key = key};

	if (each_node(w, t, find_node, &f) != 1 || LJ_TV_TYPE(f.val) != LJ_TTAB)
		return false;
	*ref = LJ_TV_GCPTR(f.val);
	return !lj_table_read(w->mem, w->lj, *ref, sub);
}

/*
 * Some libraries keep the methods of their userdata in a table that is the environment of their
 * functions (lib_io.c, lib_buffer.c, lib_ffi.c, after LJLIB_SET(!)). jit/vmdef.lua's names for
 * them:
 */
static const char *method_table(const char *module)
{
	static const char *const names[][2] = {
		{"io", "io.method"},
		{"buffer", "buffer.method"},
		{"ffi", "ffi.clib"},
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(module, names[i][0]))
			return names[i][1];
	return NULL;
}

static int report(struct lj_loaded_walk *w, const char *module, const char *field, uint64_t func)
{
	struct lj_loaded found = {.module = module, .field = field, .func = func};
	const char *methods = method_table(module);
	const struct lj_layout *lj = w->lj;
	uint8_t head[LJ_FUNC_READ];
	uint64_t env;
	int err;

	if (!foreign_plausible(func) || mem_read(w->mem, head, LJ_OFF(lj, FUNC_READ), func) ||
	    head[LJ_OFF(lj, FUNC_GCT)] != LJ_GCT_FUNC)
		return 0;
	found.ffid = head[LJ_OFF(lj, FUNC_FFID)];
	found.code = found.ffid ? foreign_word(head, LJ_OFF(lj, FUNC_F))
				: lj_ref_at(lj, head, LJ_OFF(lj, FUNC_PC)) - LJ_OFF(lj, PROTO_SIZE);
	env = lj_ref_at(lj, head, LJ_OFF(lj, FUNC_ENV));
	if (methods && found.ffid > 1 && env != w->globals) {
		err = modules_add(&w->modules, env, 1, true, methods);
		if (err)
			return err;
	}
	return w->fn(w->arg, &found);
}

/* Adds a table in a module. ffi.callback is under "" in an environment (luaopen_ffi). */
static int add_inner(struct lj_loaded_walk *w, const struct module *m, const char *key,
		     uint64_t ref)
{
	char name[MODULES_MAX_NAME];

	if (m->methods)
		return !*key && !strcmp(m->name, "ffi.clib")
			       ? modules_add(&w->modules, ref, m->depth + 1, true, "ffi.callback")
			       : 0;
	return module_join(name, m->name, key)
		       ? modules_add(&w->modules, ref, m->depth + 1, false, name)
		       : 0;
}

static int module_node(struct lj_loaded_walk *w, const char *key, uint64_t val, void *arg)
{
	const struct module *m = arg;

	return LJ_TV_TYPE(val) == LJ_TFUNC ? report(w, m->name, key, LJ_TV_GCPTR(val))
					   : add_inner(w, m, key, LJ_TV_GCPTR(val));
}

/* Returns jit/vmdef.lua's name of a module in package.loaded. */
static const char *module_name(const char *key)
{
	if (!strcmp(key, "_G"))
		return "";
	return strcmp(key, "string.buffer") ? key : "buffer";
}

static int loaded_node(struct lj_loaded_walk *w, const char *key, uint64_t val, void *arg)
{
	(void)arg;
	if (LJ_TV_TYPE(val) == LJ_TTAB)
		return modules_add(&w->modules, LJ_TV_GCPTR(val), 1, false, module_name(key));
	return report(w, key, "", LJ_TV_GCPTR(val)); /* table.new: the module is the function */
}

/* The list grows at its end during the walk. */
static int walk_modules(struct lj_loaded_walk *w)
{
	struct module *m;

	for (m = w->modules; m; m = m->hh.next) {
		struct lj_table t;
		int stop;

		if (lj_table_read(w->mem, w->lj, m->ref, &t))
			continue;
		stop = each_node(w, &t, module_node, m);
		if (stop)
			return stop;
	}
	return 0;
}

static int open_registry(struct lj_loaded_walk *w, uint64_t registrytv, struct lj_table *registry)
{
	uint64_t tv;
	int err;

	err = mem_read(w->mem, &tv, sizeof(tv), registrytv);
	if (err)
		return err;
	if (lj_is_gc32(w->lj))
		tv = lj_tv_of_gc32(tv);
	if (LJ_TV_TYPE(tv) != LJ_TTAB)
		return -EBADMSG;
	return lj_table_read(w->mem, w->lj, LJ_TV_GCPTR(tv), registry);
}

static int open_loaded(struct lj_loaded_walk *w, uint64_t registrytv, struct lj_table *loaded)
{
	struct lj_table registry;
	uint64_t ref;
	int err = open_registry(w, registrytv, &registry);

	if (err)
		return err;
	return get_table(w, &registry, "_LOADED", loaded, &ref) ? 0 : -ENOENT;
}

static struct lj_loaded_walk begin(const struct lb_mem *mem, const struct lj_layout *layout)
{
	return (struct lj_loaded_walk){
		.mem = mem,
		.lj = layout,
		.max_visits = MODULES_MAX_VISITS,
		.max_inner = UINT32_MAX,
	};
}

int lj_loaded_module(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		     const char *module, uint64_t *table)
{
	struct lj_loaded_walk w = begin(mem, layout);
	struct lj_table loaded, t;
	int err = open_loaded(&w, g + layout->registrytv, &loaded);

	if (err)
		return err;
	return get_table(&w, &loaded, module, &t, table) ? 0 : -ENOENT;
}

bool lj_loaded_has_function(const struct lb_mem *mem, const struct lj_layout *layout,
			    uint64_t table, const char *field)
{
	struct lj_loaded_walk w = begin(mem, layout);
	struct lj_loaded_find f = {.key = field};
	struct lj_table t;

	return !lj_table_read(mem, layout, table, &t) && each_node(&w, &t, find_node, &f) == 1 &&
	       LJ_TV_TYPE(f.val) == LJ_TFUNC;
}

int lj_loaded_walk(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		   lj_loaded_fn fn, void *arg)
{
	struct lj_loaded_walk w = begin(mem, layout);
	struct lj_table loaded, globals;
	uint64_t ref;
	int err;

	w.fn = fn;
	w.arg = arg;
	err = open_loaded(&w, g + layout->registrytv, &loaded);
	if (err)
		return err;
	if (get_table(&w, &loaded, "_G", &globals, &ref))
		w.globals = ref;
	err = each_node(&w, &loaded, loaded_node, NULL);
	w.max_inner = MODULES_MAX_INNER;
	if (!err)
		err = walk_modules(&w);
	modules_free(&w.modules);
	return err;
}

static int kept_node(struct lj_loaded_walk *w, const char *key, uint64_t val, void *arg)
{
	(void)arg;
	return LJ_TV_TYPE(val) == LJ_TFUNC ? report(w, "", key, LJ_TV_GCPTR(val)) : 0;
}

int lj_loaded_kept(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		   lj_loaded_fn fn, void *arg)
{
	struct lj_loaded_walk w = begin(mem, layout);
	struct lj_table registry, loaded, globals;
	uint64_t ref;
	int err = open_registry(&w, g + layout->registrytv, &registry);

	if (err)
		return err;
	w.fn = fn;
	w.arg = arg;
	w.max_visits = MODULES_MAX_KEPT;
	err = each_node(&w, &registry, kept_node, NULL);
	if (!err && get_table(&w, &registry, "_LOADED", &loaded, &ref) &&
	    get_table(&w, &loaded, "_G", &globals, &ref))
		err = each_node(&w, &globals, kept_node, NULL);
	return err;
}

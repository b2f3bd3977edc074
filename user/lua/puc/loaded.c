/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breadth-first search: modules, then the tables in them. A table that is reachable by two paths is
 * found by the shorter one first. Each table is visited once; MODULES_MAX_VISITS bounds the nodes.
 *
 *     Table -> node[2^lsizenode]:  value | key | tag of the key | next
 *
 * The array part is skipped: names are strings.
 */
#include "loaded.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lua/foreign.h"
#include "lua/modules.h"
#include "str.h"

#define MAX_LSIZENODE 16 /* of one table */
#define CHUNK 256	 /* nodes per read */
#define MAX_OBJECT 64	 /* bytes of a Node, or read of a Table or a Closure */

/* lua.h; the low bits of a tag, in all versions */
enum {
	LUA_TSTRING = 4,
	LUA_TTABLE = 5,
	LUA_TFUNCTION = 6,
	TT_BASIC = 0x0f,
};

struct node {
	uint64_t val, key;
	uint8_t val_tt, key_tt;
};

struct puc_loaded_table {
	uint64_t node;
	uint32_t nnodes;
};

struct puc_loaded_walk {
	const struct lb_mem *mem;
	const struct puc_layout *puc;
	puc_loaded_fn fn;
	void *arg;
	uint32_t visits, max_visits;
	uint32_t max_inner;	/* tables to visit in one table */
	struct module *modules; /* by ref, in the order of discovery */
};

/* Called for each node of a table that has a string key and a table or function as its value. A
 * nonzero return ends it. */
typedef int (*node_fn)(struct puc_loaded_walk *w, const char *key, const struct node *node,
		       void *arg);

static uint8_t basic(uint8_t tt)
{
	return tt & TT_BASIC;
}

/* Reads a name: a short string without NULs. */
static bool read_name(const struct puc_loaded_walk *w, uint64_t ref, char name[MODULES_MAX_NAME])
{
	bool cut = false;
	size_t len;

	return !puc_str_read(w->mem, w->puc, ref, name, MODULES_MAX_NAME - 1, &len, &cut) && !cut &&
	       len < MODULES_MAX_NAME - 1 && strlen(name) == len;
}

static int read_table(const struct puc_loaded_walk *w, uint64_t ref, struct puc_loaded_table *t)
{
	uint8_t head[MAX_OBJECT], lsizenode;

	if (!foreign_plausible(ref) || mem_read(w->mem, head, w->puc->t_node + 8u, ref))
		return -EFAULT;
	lsizenode = head[w->puc->t_lsizenode];
	if (basic(head[PUC_GC_TT]) != LUA_TTABLE || lsizenode > MAX_LSIZENODE)
		return -EBADMSG;
	t->node = foreign_word(head, w->puc->t_node);
	t->nnodes = 1u << lsizenode;
	return 0;
}

static struct node parse_node(const struct puc_layout *puc, const uint8_t *bytes)
{
	return (struct node){
		.val = foreign_word(bytes, puc->node_val + PUC_TV_VALUE),
		.val_tt = bytes[puc->node_val + PUC_TV_TT],
		.key = foreign_word(bytes, puc->node_key),
		.key_tt = bytes[puc->node_key_tt],
	};
}

/* True of a string key with a function or a table, up to max_inner tables, which it counts. */
static bool wanted(const struct puc_loaded_walk *w, const struct node *node, uint32_t *tables)
{
	if (basic(node->key_tt) != LUA_TSTRING)
		return false;
	if (basic(node->val_tt) == LUA_TTABLE)
		return ++*tables <= w->max_inner;
	return basic(node->val_tt) == LUA_TFUNCTION;
}

static int each_node(struct puc_loaded_walk *w, const struct puc_loaded_table *t, node_fn fn,
		     void *arg)
{
	uint8_t bytes[CHUNK * MAX_OBJECT];
	uint32_t first, i, inner = 0, size = w->puc->node_size;

	for (first = 0; first < t->nnodes; first += CHUNK) {
		uint32_t n = t->nnodes - first < CHUNK ? t->nnodes - first : CHUNK;

		if (mem_read(w->mem, bytes, n * size, t->node + (uint64_t)first * size))
			return 0;
		for (i = 0; i < n; i++) {
			struct node node = parse_node(w->puc, bytes + (size_t)i * size);
			char key[MODULES_MAX_NAME];
			int stop;

			if (w->visits++ >= w->max_visits)
				return 0;
			if (!wanted(w, &node, &inner) || !read_name(w, node.key, key))
				continue;
			stop = fn(w, key, &node, arg);
			if (stop)
				return stop;
		}
	}
	return 0;
}

struct puc_loaded_find {
	const char *key;
	struct node node;
};

static int find_node(struct puc_loaded_walk *w, const char *key, const struct node *node, void *arg)
{
	struct puc_loaded_find *f = arg;

	(void)w;
	if (strcmp(key, f->key) != 0)
		return 0;
	f->node = *node;
	return 1;
}

/* Returns a function value's lua_CFunction: itself, or a C closure's; 0: it is a Lua function. */
static uint64_t c_function(const struct puc_loaded_walk *w, const struct node *node)
{
	const struct puc_layout *puc = w->puc;
	uint8_t head[MAX_OBJECT], tt = node->val_tt & PUC_TT_MASK;

	if (puc->version > 51 && tt == puc->tt_lcf)
		return node->val;
	if (tt != puc->tt_ccl || !foreign_plausible(node->val) ||
	    mem_read(w->mem, head, puc->closure_p + 8u, node->val) ||
	    basic(head[PUC_GC_TT]) != LUA_TFUNCTION) /* 5.2.0: the header has no variant */
		return 0;
	if (puc->closure_isC != PUC_NONE && !head[puc->closure_isC])
		return 0;
	return foreign_word(head, puc->closure_p);
}

/* Returns a function value's Proto; 0: it is a C function. */
static uint64_t lua_function(const struct puc_loaded_walk *w, const struct node *node)
{
	const struct puc_layout *puc = w->puc;
	uint8_t head[MAX_OBJECT];

	if ((node->val_tt & PUC_TT_MASK) != puc->tt_lcl || !foreign_plausible(node->val) ||
	    mem_read(w->mem, head, puc->closure_p + 8u, node->val) ||
	    basic(head[PUC_GC_TT]) != LUA_TFUNCTION)
		return 0;
	if (puc->closure_isC != PUC_NONE && head[puc->closure_isC])
		return 0;
	return foreign_word(head, puc->closure_p);
}

static int report(struct puc_loaded_walk *w, const char *module, const char *field,
		  const struct node *node)
{
	struct puc_loaded found = {.module = module, .field = field, .f = c_function(w, node)};

	return found.f ? w->fn(w->arg, &found) : 0;
}

/* Queues a table that is in a module. */
static int add_inner(struct puc_loaded_walk *w, const struct module *m, const char *key,
		     uint64_t ref)
{
	char name[MODULES_MAX_NAME];

	if (m->methods)
		return strcmp(key, "__index") != 0
			       ? 0
			       : modules_add(&w->modules, ref, m->depth + 1, true, m->name);
	return module_join(name, m->name, key)
		       ? modules_add(&w->modules, ref, m->depth + 1, false, name)
		       : 0;
}

static int module_node(struct puc_loaded_walk *w, const char *key, const struct node *node,
		       void *arg)
{
	const struct module *m = arg;

	return basic(node->val_tt) == LUA_TFUNCTION ? report(w, m->name, key, node)
						    : add_inner(w, m, key, node->val);
}

static int loaded_node(struct puc_loaded_walk *w, const char *key, const struct node *node,
		       void *arg)
{
	(void)arg;
	if (basic(node->val_tt) == LUA_TTABLE)
		return modules_add(&w->modules, node->val, 1, false,
				   strcmp(key, "_G") != 0 ? key : "");
	return report(w, key, "", node); /* the module is the function */
}

/*
 * luaL_newmetatable() stores metatables in the registry under the names of their types. The methods
 * of "FILE*" are named as in LuaJIT's jit/vmdef.lua.
 */
static int registry_node(struct puc_loaded_walk *w, const char *key, const struct node *node,
			 void *arg)
{
	static const char *const no_types[] = {"_LOADED", "_PRELOAD", "_CLIBS", "_LOADLIB",
					       "_HKEY",	  "_HOOKKEY", "_UBOX*"};
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(no_types) / sizeof(no_types[0]); i++)
		if (!strcmp(key, no_types[i]))
			return 0;
	if (basic(node->val_tt) != LUA_TTABLE)
		return 0;
	return modules_add(&w->modules, node->val, 1, true,
			   strcmp(key, "FILE*") != 0 ? key : "io.method");
}

/* Visits all modules of the list; new ones are appended meanwhile. */
static int walk_modules(struct puc_loaded_walk *w)
{
	struct module *m;

	for (m = w->modules; m; m = m->hh.next) {
		struct puc_loaded_table t;
		int stop;

		if (read_table(w, m->ref, &t))
			continue;
		stop = each_node(w, &t, module_node, m);
		if (stop)
			return stop;
	}
	return 0;
}

static int open_registry(struct puc_loaded_walk *w, uint64_t addr,
			 struct puc_loaded_table *registry, struct puc_loaded_table *loaded)
{
	struct puc_loaded_find f = {.key = "_LOADED"};
	uint8_t tv[PUC_TV_SIZE];
	int err = mem_read(w->mem, tv, sizeof(tv), addr);

	if (err)
		return err;
	if (basic(tv[PUC_TV_TT]) != LUA_TTABLE)
		return -EBADMSG;
	err = read_table(w, foreign_word(tv, PUC_TV_VALUE), registry);
	if (err)
		return err;
	if (each_node(w, registry, find_node, &f) != 1 || basic(f.node.val_tt) != LUA_TTABLE)
		return -ENOENT;
	return read_table(w, f.node.val, loaded);
}

static bool usable(const struct puc_layout *puc)
{
	return puc->node_size <= MAX_OBJECT && puc->node_val + PUC_TV_SIZE <= MAX_OBJECT &&
	       puc->node_key + 8u <= MAX_OBJECT && puc->node_key_tt < MAX_OBJECT &&
	       puc->t_node + 8u <= MAX_OBJECT && puc->t_lsizenode < puc->t_node &&
	       puc->closure_p + 8u <= MAX_OBJECT;
}

static struct puc_loaded_walk begin(const struct lb_mem *mem, const struct puc_layout *puc)
{
	return (struct puc_loaded_walk){
		.mem = mem,
		.puc = puc,
		.max_visits = MODULES_MAX_VISITS,
		.max_inner = UINT32_MAX,
	};
}

int puc_loaded_module(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		      const char *module, uint64_t *table)
{
	struct puc_loaded_walk w = begin(mem, puc);
	struct puc_loaded_table registry, loaded;
	struct puc_loaded_find f = {.key = module};
	int err =
		usable(puc) ? open_registry(&w, g + puc->g_registry, &registry, &loaded) : -EINVAL;

	if (err)
		return err;
	if (each_node(&w, &loaded, find_node, &f) != 1 || basic(f.node.val_tt) != LUA_TTABLE)
		return -ENOENT;
	*table = f.node.val;
	return 0;
}

bool puc_loaded_has_function(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t table,
			     const char *field)
{
	struct puc_loaded_walk w = begin(mem, puc);
	struct puc_loaded_find f = {.key = field};
	struct puc_loaded_table t;

	return usable(puc) && !read_table(&w, table, &t) && each_node(&w, &t, find_node, &f) == 1 &&
	       basic(f.node.val_tt) == LUA_TFUNCTION;
}

int puc_loaded_walk(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    puc_loaded_fn fn, void *arg)
{
	struct puc_loaded_walk w = begin(mem, puc);
	struct puc_loaded_table registry, loaded;
	int err;

	w.fn = fn;
	w.arg = arg;
	if (!usable(puc))
		return -EINVAL;
	err = open_registry(&w, g + puc->g_registry, &registry, &loaded);
	if (err)
		return err;
	err = each_node(&w, &loaded, loaded_node, NULL);
	if (!err)
		err = each_node(&w, &registry, registry_node, NULL);
	w.max_inner = MODULES_MAX_INNER;
	if (!err)
		err = walk_modules(&w);
	modules_free(&w.modules);
	return err;
}

static int kept_node(struct puc_loaded_walk *w, const char *key, const struct node *node, void *arg)
{
	struct puc_loaded found = {.module = "", .field = key, .f = lua_function(w, node)};

	(void)arg;
	return found.f ? w->fn(w->arg, &found) : 0;
}

int puc_loaded_kept(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    puc_loaded_fn fn, void *arg)
{
	struct puc_loaded_walk w = begin(mem, puc);
	struct puc_loaded_find f = {.key = "_G"};
	struct puc_loaded_table registry, loaded, globals;
	int err;

	w.fn = fn;
	w.arg = arg;
	w.max_visits = MODULES_MAX_KEPT;
	if (!usable(puc))
		return -EINVAL;
	err = open_registry(&w, g + puc->g_registry, &registry, &loaded);
	if (err)
		return err;
	err = each_node(&w, &registry, kept_node, NULL);
	if (err)
		return err;
	if (each_node(&w, &loaded, find_node, &f) == 1 && basic(f.node.val_tt) == LUA_TTABLE &&
	    !read_table(&w, f.node.val, &globals))
		err = each_node(&w, &globals, kept_node, NULL);
	return err;
}

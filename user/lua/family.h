/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbolizer's interface to a family of VMs: a table of functions for each (sym/lj.c,
 * sym/puc.c). The structs below are the first members of the family's own: lj_proto, puc_proto, and
 * those of sym/lj.c and sym/puc.c for names and compiled code.
 */
#ifndef LUA_FAMILY_H
#define LUA_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

#include "definition.h"

struct sym_family;

/* The family whose functions take it. */
struct proto {
	const struct sym_family *family;
};
struct names {
	const struct sym_family *family;
};
struct compiled {
	const struct sym_family *family;
};

/* An object of the collector's list of all. */
struct sym_object {
	enum {
		SYM_OBJECT_OTHER,
		SYM_OBJECT_PROTO,
		SYM_OBJECT_CLOSURE,
	} kind;
	uint64_t next; /* the one allocated before it */
	/* of prototypes */
	uint64_t chunk; /* its chunk's name, a string; 0: none */
	int32_t firstline, lastline;
	uint32_t size; /* the same in prototypes with the same contents */
};

/* Contracts: lua/lj/proto.h and lua/lj/ffnames.h; build: the VM's. free functions take NULL. */
struct sym_family {
	int (*read)(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		    struct proto **out);
	void (*free)(struct proto **p);
	uint32_t (*fingerprint)(const struct proto *p);
	uint64_t (*hash)(const struct proto *p);
	/* may be NULL: equal hashes only */
	bool (*same)(const struct proto *a, const struct proto *b);
	bool (*complete)(const struct proto *p);
	/* may be NULL: whatever can be read fits */
	const char *(*misfit)(const struct proto *p); /* family_misfit() */
	const char *(*chunkname)(const struct proto *p, size_t *len);
	int32_t (*firstline)(const struct proto *p);
	int32_t (*line)(const struct proto *p, uint32_t pc);
	/* Does not set *name if the call gives none: no text, an index, a parameter (any function
	 * may be passed for it). */
	void (*callname)(const struct proto *p, uint32_t pc, const char **name);
	int (*definitions)(const struct proto *p, sym_definition_fn fn, void *arg);
	bool (*is_main)(const struct proto *p);
	uint32_t (*shape)(const struct proto *p);
	/* Returns a hash of a function's bytecode and constants, equal in each process that loads it. */
	uint32_t (*contents)(const struct proto *p);
	uint32_t (*child)(const struct proto *p, uint64_t child);
	/* -EBADMSG: no such object at addr */
	int (*object)(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		      struct sym_object *out);

	int (*names_read)(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
			  struct names **out);
	void (*names_free)(struct names **names);
	bool (*names_same)(const struct names *a, const struct names *b);
	const char *(*builtin)(const struct names *names, uint64_t number);
	const char *(*cfunction)(const struct names *names, uint64_t addr);
	/* Calls fn for each Lua function that the registry holds under a string, or a global: with
	 * its prototype. Returns 0, fn's value, or -errno: they cannot be read. */
	int (*kept)(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		    sym_definition_fn fn, void *arg);
	/* Line attribution of one process's machine code: attribute() replaces the topmost frames of a
	 * sample in it (jit/cache.h). NULL: the family compiles nothing. */
	int (*compiled_new)(const struct lb_mem *mem, struct compiled **out);
	/* saw is called for each prototype of compiled code while that is read, which may be freed soon */
	void (*compiled_watch)(struct compiled *compiled,
			       void (*saw)(void *arg, uint64_t proto, uint32_t fp), void *arg);
	void (*compiled_free)(struct compiled **compiled);
	/* The same at another offset: a sample with its snapshot's frames, and with the exact ones. rec: before
	 * attribute(). -ENOENT: they are not known. */
	int (*attribute_elsewhere)(struct compiled *compiled, const struct lb_rec_sample *rec,
				   uint32_t mcofs, struct lb_rec_sample *snapshot,
				   struct lb_rec_sample *exact);
	int (*attribute)(struct compiled *compiled, const struct lb_build *build,
			 const struct names *names, struct lb_rec_sample *rec);
	/*
	 * Finds the zone stack: the table package.loaded[module]. NULL: the module that the family
	 * has for zones, if it has its functions. -ENOENT: there is none; or -errno: the VM's tables
	 * cannot be read.
	 */
	int (*zone)(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		    const char *module, struct lb_zone *out);
	/* For BPF; but for the seed. */
	void (*zone_layout)(const struct lb_build *build, struct lb_zone_layout *out);
	/* C functions: the name in the loaded libraries before the ELF symbol */
	bool libraries_first;
	/* a C function may be known by its slot on the Lua stack alone, which its results overwrite
	 * as it returns */
	bool slots_change;
};

/* Returns why it cannot be a prototype of its layout, as a loss reason; NULL: it can. */
static inline const char *family_misfit(const struct sym_family *family, const struct proto *p)
{
	return family->misfit ? family->misfit(p) : NULL;
}

#endif

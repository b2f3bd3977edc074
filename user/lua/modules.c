// SPDX-License-Identifier: BSD-2-Clause
#include "modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TABLES 4096
#define MAX_DEPTH 3 /* "ngx.req.socket" */

int modules_add(struct module **modules, uint64_t ref, unsigned depth, bool methods,
		const char *name)
{
	struct module *m;

	HASH_FIND(hh, *modules, &ref, sizeof(ref), m);
	if (m || depth > MAX_DEPTH || HASH_COUNT(*modules) >= MAX_TABLES)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->ref = ref;
	m->depth = depth;
	m->methods = methods;
	snprintf(m->name, sizeof(m->name), "%s", name);
	HASH_ADD(hh, *modules, ref, sizeof(m->ref), m);
	if (!m->hh.tbl) {
		free(m);
		return -ENOMEM;
	}
	return 0;
}

void modules_free(struct module **modules)
{
	struct module *m, *next;

	HASH_ITER (hh, *modules, m, next) {
		HASH_DEL(*modules, m);
		free(m);
	}
}

bool module_join(char name[MODULES_MAX_NAME], const char *module, const char *field)
{
	int n = snprintf(name, MODULES_MAX_NAME, "%s%s%s", module, *module && *field ? "." : "",
			 field);

	return n >= 0 && n < MODULES_MAX_NAME;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: load OBJECT.bpf.o...
 *
 * Loads each program of BPF objects into the running kernel and prints what it cost there:
 *
 *	{"luabpf": {"luabpf_sample": {"verified_insns": 123, "insns": 45, "jited_len": 678}}}
 *
 * An object with a switch `by_zone` is loaded once more with that set ("luabpf_sample+zones"): the
 * verifier does not look at code that a constant turns off.
 *
 * Programs are loaded one by one, optional ones (SEC("?...")) too, so that a failure names its
 * program; the others are still measured. libbpf puts the verifier's log on stderr. Takes object
 * files, not skeletons, so that it needs no change when an object is added.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* Returns the variable of the object's .rodata; NULL: it has none of this name. */
static char *find_switch(const struct bpf_object *obj, const char *name)
{
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	const struct bpf_map *map;
	char *values = NULL;
	size_t size = 0;

	bpf_object__for_each_map(map, obj) if (strstr(bpf_map__name(map), ".rodata")) values =
		(char *)bpf_map__initial_value((struct bpf_map *)map, &size);
	for (int i = 0; section && values && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(section) + i;
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name) && var->offset < size)
			return values + var->offset;
	}
	return NULL;
}

static int put_info(cJSON *programs, const struct bpf_program *prog, bool zones)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info), insns;
	char name[128];
	cJSON *cost;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return -errno;
	cost = cJSON_GetObjectItem(programs, bpf_program__name(prog));
	if (zones && cost &&
	    cJSON_GetObjectItem(cost, "verified_insns")->valuedouble == info.verified_insns)
		return 0; /* it has no code for zones */
	snprintf(name, sizeof(name), "%s%s", bpf_program__name(prog), zones ? "+zones" : "");
	cost = cJSON_AddObjectToObject(programs, name);
	cJSON_AddNumberToObject(cost, "verified_insns", info.verified_insns);
	insns = info.xlated_prog_len / 8;
	cJSON_AddNumberToObject(cost, "insns", insns);
	cJSON_AddNumberToObject(cost, "jited_len", info.jited_prog_len);
	return 0;
}

/* The index-th program of the file, alone. -ENOENT: there are fewer, or no switch of zones. */
static int load_one(const char *path, int index, bool zones, cJSON *programs)
{
	struct bpf_program *prog, *chosen = NULL;
	struct bpf_object *obj;
	char *by_zone;
	int err, i = 0;

	obj = bpf_object__open_file(path, NULL);
	if (!obj)
		return -errno;
	by_zone = zones ? find_switch(obj, "by_zone") : NULL;
	if (zones && !by_zone) {
		bpf_object__close(obj);
		return -ENOENT;
	}
	if (zones)
		*by_zone = 1;
	bpf_object__for_each_program (prog, obj) {
		bpf_program__set_autoload(prog, i == index);
		if (i++ == index)
			chosen = prog;
	}
	err = chosen ? bpf_object__load(obj) : -ENOENT;
	if (!err)
		err = put_info(programs, chosen, zones);
	else if (chosen)
		fprintf(stderr, "%s: %s%s: not loaded: %s\n", path, bpf_program__name(chosen),
			zones ? "+zones" : "", strerror(-err));
	bpf_object__close(obj);
	return err == -ENOENT && chosen ? -EINVAL : err;
}

static int load_all(const char *path, cJSON *objects)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	cJSON *programs;
	char name[64];
	int i, err, failed = 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
	programs = cJSON_AddObjectToObject(objects, name);
	for (i = 0; (err = load_one(path, i, false, programs)) != -ENOENT; i++) {
		failed |= err;
		err = load_one(path, i, true, programs);
		if (err != -ENOENT)
			failed |= err;
	}
	if (!i)
		fprintf(stderr, "%s: no programs in it, or no such file\n", path);
	return failed || !i ? -1 : 0;
}

int main(int argc, char **argv)
{
	cJSON *objects = cJSON_CreateObject();
	int failed = argc < 2;
	char *text;

	libbpf_set_print(print_warnings);
	for (int i = 1; i < argc; i++)
		failed |= load_all(argv[i], objects) != 0;
	text = cJSON_PrintUnformatted(objects);
	puts(text);
	free(text);
	cJSON_Delete(objects);
	return failed;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: load OBJECT.bpf.o...
 *
 * Loads each program of BPF objects into the running kernel and prints what it cost there:
 *
 *	{"luabpf": {"luabpf_sample": {"verified_insns": 123, "insns": 45, "jited_len": 678}}}
 *
 * Programs are loaded one by one, optional ones (SEC("?...")) too, so that a failure names its
 * program; the others are still measured. libbpf puts the verifier's log on stderr. Takes object
 * files, not skeletons, so that it needs no change when an object is added.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int put_info(cJSON *programs, const struct bpf_program *prog)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	cJSON *cost;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
		return -errno;
	cost = cJSON_AddObjectToObject(programs, bpf_program__name(prog));
	cJSON_AddNumberToObject(cost, "verified_insns", info.verified_insns);
	cJSON_AddNumberToObject(cost, "insns", info.xlated_prog_len / 8);
	cJSON_AddNumberToObject(cost, "jited_len", info.jited_prog_len);
	return 0;
}

/* The index-th program of the file, alone. -ENOENT: there are fewer. */
static int load_one(const char *path, int index, cJSON *programs)
{
	struct bpf_program *prog, *chosen = NULL;
	struct bpf_object *obj;
	int err, i = 0;

	obj = bpf_object__open_file(path, NULL);
	if (!obj)
		return -errno;
	bpf_object__for_each_program (prog, obj) {
		bpf_program__set_autoload(prog, i == index);
		if (i++ == index)
			chosen = prog;
	}
	err = chosen ? bpf_object__load(obj) : -ENOENT;
	if (!err)
		err = put_info(programs, chosen);
	else if (chosen)
		fprintf(stderr, "%s: %s: not loaded: %s\n", path, bpf_program__name(chosen),
			strerror(-err));
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
	for (i = 0; (err = load_one(path, i, programs)) != -ENOENT; i++)
		failed |= err;
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

// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF's search of a process's mappings, of this one, as if libc held a VM and no other file did. Prints
 * what each search found; exits with 0 when a tree has the VM and a node that was replaced no result.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unwind/abi.h>

#include "selftest_files.skel.h"

enum { UNKNOWN, NO_VM, VM }; /* enum by_files */

/* Puts the files of all executable mappings into `files`. Returns how many hold a VM, or -errno. */
static int put_files(int files)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int r, vms = 0;
	char line[4096], prot[8], path[2048];

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps)) {
		uint64_t lo, hi, offset, ino;
		unsigned major, minor;
		struct lb_file file = {};
		struct lb_file_key key;
		struct stat st;

		if (sscanf(line, "%" PRIx64 "-%" PRIx64 " %7s %" PRIx64 " %x:%x %" PRIu64 " %2047s",
			   &lo, &hi, prot, &offset, &major, &minor, &ino, path) != 8 ||
		    prot[2] != 'x' || stat(path, &st))
			continue;
		key = (struct lb_file_key){.dev = (uint64_t)major << 20 | minor,
					   .ino = ino,
					   .mtime = st.st_mtim.tv_sec,
					   .mtime_ns = st.st_mtim.tv_nsec};
		if (strstr(path, "/libc.so")) {
			file = (struct lb_file){
				.offset = offset, .size = 64, .family = LB_FAMILY_PUC};
			vms++;
		}
		r = bpf_map_update_elem(files, &key, &file, BPF_ANY);
		if (r) {
			fclose(maps);
			return r;
		}
	}
	fclose(maps);
	return vms;
}

int main(void)
{
	struct selftest_files_bpf *skel = selftest_files_bpf__open();
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	const __typeof__(*skel->bss) *found;
	struct bpf_map *map;
	int r;

	if (!skel)
		return 1;
	bpf_object__for_each_map(map, skel->obj) bpf_map__set_autocreate(
		map, map == skel->maps.files || map == skel->maps.cpus ||
			     map == skel->maps.copies || bpf_map__is_internal(map));
	r = selftest_files_bpf__load(skel);
	if (r) {
		fprintf(stderr, "cannot load: %s\n", strerror(-r));
		return 1;
	}
	r = put_files(bpf_map__fd(skel->maps.files));
	if (r == 1)
		r = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.luabpf_selftest_files),
					   &opts);
	if (r || opts.retval) {
		fprintf(stderr, "not run: %d, %u\n", r, opts.retval);
		return 1;
	}
	found = skel->bss;
	printf("by the tree %u, by a copy of its root %u, by a replaced root %u\n", found->by_tree,
	       found->by_copy, found->by_replaced);
	return found->by_tree != VM || found->by_copy != VM || found->by_replaced != UNKNOWN;
}

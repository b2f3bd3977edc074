/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF object that has a family's program: bpf/luabpf.bpf.c, or bpf/luabpf32.bpf.c, which is the same
 * source compiled for LuaJIT without GC64.
 */
#ifndef BPF_FAMILY_OBJECT_H
#define BPF_FAMILY_OBJECT_H

#include <stdint.h>

struct bpf_object;
struct bpf_object_open_opts;

/* name: of the first object, so that the maps of both objects' variables have the same names. NULL: errno
 * says why. */
struct bpf_object *family_object_open(uint32_t family, const char *name,
				      struct bpf_object_open_opts *options);

/* The names of its program, and of the map that is its own. */
const char *family_program(uint32_t family);
const char *family_walks(uint32_t family);

#endif

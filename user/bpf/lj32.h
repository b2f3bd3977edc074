/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF object for LuaJIT without GC64 (bpf/luabpf32.bpf.c), which shares the maps of the main object. */
#ifndef BPF_LJ32_H
#define BPF_LJ32_H

#include "luabpf.skel.h"

/*
 * Loads its program, with the maps of `first`, which is loaded, and puts it into that one's
 * family_programs. opts: as of bpf_object__open_file(). 0 or -errno.
 */
int lj32_load(const struct luabpf_bpf *first, const struct bpf_object_open_opts *opts);

#endif

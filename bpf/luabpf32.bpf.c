// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * The sampler for LuaJIT without GC64: the same source, compiled for references of 32 bits, so that
 * neither kind costs the other anything. It has the maps of the other object.
 */
#define LUABPF_GC32
#include "luabpf.bpf.c"

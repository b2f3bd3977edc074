// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* selftest.bpf.c for LuaJIT without GC64, of which the walker is compiled apart (luabpf32.bpf.c). */
#define LUABPF_GC32
#include "selftest.bpf.c"

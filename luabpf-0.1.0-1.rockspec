-- For `luarocks make`, in the sources: builds luabpf.profile for the Lua of luarocks. The library has to be installed
-- (make install), or LUABPF_DIR=FOLDER names where it is.
rockspec_format = "3.0"
package = "luabpf"
version = "0.1.0-1"
source = { url = "file://luabpf-0.1.0.tar.gz" }
description = {
  summary = "Profile running Lua and LuaJIT processes from outside",
  detailed = "The interface of LuaJIT's jit.profile for other processes, through eBPF, and zones for programs that are profiled.",
  license = "BSD-2-Clause",
}
supported_platforms = { "linux" }
dependencies = { "lua >= 5.1, < 5.6" }
external_dependencies = { LUABPF = { header = "luabpf.h", library = "luabpf" } }
build = {
  type = "builtin",
  modules = {
    ["luabpf.profile"] = {
      sources = { "lua/luabpf/profile.c" },
      libraries = { "luabpf" },
      incdirs = { "$(LUABPF_INCDIR)" },
      libdirs = { "$(LUABPF_LIBDIR)" },
    },
    ["luabpf.zone"] = "lua/luabpf/zone.lua",
    zone = "lua/zone.lua",
  },
}

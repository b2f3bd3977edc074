-- SPDX-License-Identifier: BSD-2-Clause
-- The value of LUA_INIT under `luabpf count` and `luabpf trace`: loads the hook module, then does
-- what the user's own LUA_INIT says. It is loaded before the hook is set, so that only its calls count.
local version = _VERSION:sub(5)
local name = version == "5.1" and "LUA_INIT" or "LUA_INIT_" .. version:gsub("%.", "_")
local init = os.getenv("LUABPF_" .. name)
if not init then
  name = "LUA_INIT"
  init = os.getenv("LUABPF_LUA_INIT")
end
local user, message
if init and init:sub(1, 1) == "@" then
  user, message = loadfile(init:sub(2))
elseif init then
  user, message = (loadstring or load)(init, "=" .. name)
end
if message then error(message, 0) end
local lib = os.getenv("LUABPF_HOOK_LIB")
local start = lib and package.loadlib(lib .. "/" .. version .. "/luabpf/hook.so", "luaopen_luabpf_hook")
if start then start() end
if user then user() end

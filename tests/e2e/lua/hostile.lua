-- SPDX-License-Identifier: BSD-2-Clause
-- A process that attacks the profiler: luajit -joff hostile.lua MODE [ARGUMENTS]. Each mode runs until it is killed.
-- Its own code does not use the data that it corrupts, so that it survives.
local ffi = require "ffi"
ffi.cdef [[
int open(const char *, int);
void *mmap(void *, size_t, int, int, int, long);
int mprotect(void *, size_t, int);
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
int dlclose(void *);
]]
local C = ffi.C
local mode = ...
local PAGE, READ, EXEC, PRIVATE, ANONYMOUS = 4096, 1, 4, 2, 32

local function address(object)
  return ffi.cast("uintptr_t", tonumber(string.format("%p", object):sub(3), 16))
end

local function bytes(at)
  return ffi.cast("uint8_t *", at)
end

local function word(at)
  return ffi.cast("uint64_t *", at)
end

local function random64()
  return ffi.cast("uint64_t", math.random(0, 2 ^ 32 - 1)) * 2 ^ 32 + math.random(0, 2 ^ 32 - 1)
end

local function spin()
  local x = 0
  for i = 1, 2e3 do x = x + i % 7 end
  return x
end

local function ready()
  io.stdout:write("ready\n")
  io.stdout:flush()
end

local modes = {}

-- Sizes, name, lines and variables of its prototypes (GCproto of GC64), from random bytes, addresses and huge lengths.
function modes.names()
  collectgarbage("stop")
  local function victim()
    return spin()
  end
  local protos = {word(address(victim) + 32)[0] - 104, word(address(spin) + 32)[0] - 104}
  ready()
  while true do
    for _, proto in ipairs(protos) do
      local at = math.random(64, 103)
      bytes(proto)[at] = math.random(0, 255)
      word(proto + 64 + 8 * math.random(0, 4))[0] = math.random(3) == 1 and proto or random64()
      ffi.cast("uint32_t *", proto + 12)[0] = math.random(0, 2 ^ 32 - 1)
      ffi.cast("uint32_t *", proto + 48)[math.random(0, 2)] = math.random(0, 2 ^ 32 - 1)
    end
    victim()
  end
end

-- The lua_State of the coroutine that resumed the running one, and its frames' links: to themselves, too.
function modes.frames()
  collectgarbage("stop")
  local outer
  local function inner()
    local state = address(outer)
    local base, kept, links = word(state + 32)[0], {}, {}
    for at = 32, 88, 8 do kept[at] = word(state + at)[0] end
    for slot = 1, 4 do links[slot] = word(base - 8 * slot)[0] end
    while true do
      local what = math.random(6)
      for slot = 1, 4 do word(base - 8 * slot)[0] = what == 1 and 3 or what == 2 and random64() or links[slot] end
      for at = 32, 56, 8 do
        word(state + at)[0] = what == 3 and random64() or what == 4 and state + at or what == 5 and kept[88 - at] or kept[at]
      end
      spin()
    end
  end
  outer = coroutine.create(function()
    local running = coroutine.wrap(inner)
    running()
  end)
  ready()
  coroutine.resume(outer)
end

-- As many mappings of executable files as the kernel allows.
function modes.mappings(file, most)
  local fd = C.open(file, 0)
  for i = 1, tonumber(most) do
    local at = C.mmap(nil, PAGE, READ + (i % 2 == 0 and EXEC or 0), PRIVATE, fd, 0)
    if at == ffi.cast("void *", -1) then break end
  end
  ready()
  while true do spin() end
end

-- Files that it names, mapped as code: forged libraries, devices.
function modes.files(...)
  for _, file in ipairs {...} do
    local fd = C.open(file, 0)
    assert(fd >= 0 and C.mmap(nil, PAGE, READ + EXEC, PRIVATE, fd, 0) ~= ffi.cast("void *", -1), file)
  end
  ready()
  while true do spin() end
end

-- A library with a VM comes, runs and goes.
function modes.unloads(file)
  ready()
  while true do
    local lib = C.dlopen(file, 2 + 8) -- RTLD_NOW, RTLD_DEEPBIND: luajit exports functions of the same names
    local new = ffi.cast("void *(*)(void)", C.dlsym(lib, "luaL_newstate"))
    local load = ffi.cast("int (*)(void *, const char *)", C.dlsym(lib, "luaL_loadstring"))
    local call = ffi.cast("int (*)(void *, int, int, int, long, void *)", C.dlsym(lib, "lua_pcallk"))
    local close = ffi.cast("void (*)(void *)", C.dlsym(lib, "lua_close"))
    local L = new()
    assert(load(L, "local x = 0 for i = 1, 1e5 do x = x + i % 7 end") == 0 and call(L, 0, 0, 0, 0, nil) == 0)
    close(L)
    C.dlclose(lib)
  end
end

-- A chunk whose name would forge lines, clear the screen and turn text round.
function modes.chunks()
  local name = "@\27[2J\27]0;forged\7\n100%  forged\r\226\128\174\0end"
  local chunk = assert(loadstring("return function(spin) while true do spin() end end", name))()
  ready()
  chunk(spin)
end

modes[mode](select(2, ...))

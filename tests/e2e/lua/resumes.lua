-- SPDX-License-Identifier: BSD-2-Clause
-- usage: resumes.lua HOW SECONDS [joff], in a host of tests/hosts/resumes.c
-- caller() runs other() in another thread, and then C code of run() goes on. Prints the CPU time of
-- all, and that of the C code. How "main" and "far" need that it is called in a coroutine. With "ffi" run() is a Lua function,
-- which calls C code that calls back.
local how, seconds_of_all, joff = ...
if joff == "joff" then jit.off() end
local clock = os.clock

local function busy() local x = 0 for i = 1, 3000 do x = x + i % 7 end return x end

local others = {
  yields = function() while true do busy() coroutine.yield() end end,
  far = function() while true do busy() coroutine.yield() end end,
  hooked = function() while true do busy() end end,
  fails = function() busy() error("as it should") end,
}
local other = others[how] or busy

if how == "ffi" then
  local ffi = require("ffi")
  ffi.cdef "typedef void (*called_t)(void); void call_back(called_t);"
  local call_back, callback = ffi.C.call_back, ffi.cast("called_t", other)
  function run() call_back(callback) return nil end
end

local idle = function() end
if how == "later" then -- the FFI's callbacks run in the thread that has used it last
  local ffi = require("ffi")
  ffi.cdef "typedef void (*called_t)(void); void call_later(called_t);"
  ffi.C.call_later(ffi.cast("called_t", other))
  idle = coroutine.wrap(function() while true do ffi.new("int[2]") coroutine.yield() end end)
end

local function caller() idle() run(other, how) return nil end

local function turns()
  local start, before = clock(), seconds()
  repeat caller() until clock() - start > tonumber(seconds_of_all)
  print(clock() - start, seconds() - before)
end

print "ready"
io.stdout:flush()
io.read()
if how == "main" or how == "far" then coroutine.wrap(turns)() else turns() end

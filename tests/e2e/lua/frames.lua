-- SPDX-License-Identifier: BSD-2-Clause
-- usage: frames.lua SIZE SECONDS [joff], in a host of tests/hosts/frames.c
-- Lua that is called and resumed by C functions with SIZE bytes on the C stack, by turns and nested in each other.
-- Prints how often the four functions that work have turned, each a random number of times: samples are the same time apart.
local size, seconds, joff = tonumber((...)), tonumber((select(2, ...))), select(3, ...)
if joff == "joff" then jit.off() end
local clock, random, call, resume = os.clock, math.random, call, resume

local count = { called = 0, resumed = 0, nested = 0, plain = 0 }
local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function turns_of(name) local n = random(1000, 200000) count[name] = count[name] + n return n end
local function called() local x = spin(turns_of("called")) return x end
local function resumed() local x = spin(turns_of("resumed")) return x end
local function nested() local x = spin(turns_of("nested")) return x end
local function plain() local x = spin(turns_of("plain")) return x end
local function inner() local x = resume(nested, size) return x end
local function outer() local x = call(inner, size) return x end
local function turns()
  local start = clock()
  repeat
    call(called, size)
    resume(resumed, size)
    resume(outer, size)
    plain()
  until clock() - start > seconds
  print(count.called, count.resumed, count.nested, count.plain)
end

print "ready"
io.stdout:flush()
io.read()
turns()

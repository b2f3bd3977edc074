-- SPDX-License-Identifier: BSD-2-Clause
-- usage: functions.lua SECONDS, behind laps.LUA: functions that no name at a call belongs to, and how long those of a kind took.
local seconds, clock, load = tonumber(arg[1]), os.clock, loadstring or load
local H = {
  function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end,
  function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end,
  function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end,
  function(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end,
}
local function by_constant()
  local x = H[1](8000) lap(1) x = x + H[2](6000) lap(2) x = x + H[3](4000) lap(3) x = x + H[4](2000) lap(4) return x
end
local function by_variable() local x = 0 for k = 1, 4 do x = x + H[k]((5 - k) * 2000) lap(k) end return x end
local function each(f, n) local r = f(n) return r end
local function by_argument() local x = 0 for k = 1, 4 do x = x + each(H[k], (5 - k) * 2000) lap(k) end return x end

-- tail calls: states that become one another
local first, second, third, fourth
function first(n) local a = 0 for i = 1, 4 * n do a = a + i % 7 end lap("first") return second(n, a) end
function second(n, a) for i = 1, 3 * n do a = a + i % 7 end lap("second") return third(n, a) end
function third(n, a) for i = 1, 2 * n do a = a + i % 7 end lap("third") return fourth(n, a) end
function fourth(n, a) for i = 1, n do a = a + i % 7 end lap("fourth") return a end
local function machine(n) local r = first(n) return r end

-- chunks of text
local function text(k) return "-- template " .. k .. "; no 12\nlocal n = ...\nlocal a = " .. k .. "\nfor i = 1, n do a = a + i % 7 end\nreturn a" end
local T = {}
for k = 1, 4 do T[k] = assert(load(text(k))) end
local function chunks() for k = 1, 4 do T[k]((5 - k) * 2000) lap("text" .. k) end end

-- what C code calls: a hook, a finalizer
local function on_line() local a = 0 for i = 1, 100 do a = a + i % 7 end return a end
local function watched(n) local a = 0
  for i = 1, n do
    a = a + i % 7
  end
  return a
end
local function hooked() debug.sethook(on_line, "l") watched(40) debug.sethook() end
local function collected() local a = 0 for i = 1, 3000 do a = a + i % 7 end return a end
local function finalized()
  local t = {}
  for i = 1, 20 do
    if newproxy then getmetatable(newproxy(true)).__gc = collected else setmetatable({}, { __gc = collected }) end
    for k = 1, 100 do t[k] = { k } end
  end
  collectgarbage("step", 100)
end

local stop = clock() + seconds
while clock() < stop do
  lap() by_constant() by_variable() by_argument() machine(2000) chunks() hooked() finalized()
end
laps()

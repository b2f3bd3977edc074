-- SPDX-License-Identifier: BSD-2-Clause
-- usage: waits.lua WORKLOAD SECONDS, under any Lua
-- Loops in which one line ("--! WORKLOAD") takes most of the time, as the processor has to wait for
-- what it computes ("--? WORKLOAD": it is called here, which takes time in an interpreter). The same
-- loop without that line takes the rest: prints the share of all() that the line has at least, then, at a line of input, runs all() for SECONDS of CPU time.
local clock, sqrt = os.clock, math.sqrt
local W = {}

-- cheap lines behind
W.divide = {
  all = function(n)
    local x, y, z = 1.5, 0, 0
    for i = 1, n do
      x = 1.1 / (1.2 / x) --! divide
      y = y + 1.5
      z = z - 2.5
    end
    return x + y + z
  end,
  without = function(n)
    local x, y, z = 1.5, 0, 0
    for i = 1, n do
      y = y + 1.5
      z = z - 2.5
    end
    return x + y + z
  end,
}

-- the last of the loop's body
W.last = {
  all = function(n)
    local x, y, z = 1.5, 0, 0
    for i = 1, n do
      y = y + 1.5
      z = z - 2.5
      x = 1.1 / (1.2 / x) --! last
    end
    return x + y + z
  end,
  without = W.divide.without,
}

-- the loop's only line
W.only = {
  all = function(n)
    local x = 1.5
    for i = 1, n do
      x = 1.1 / (1.2 / x) --! only
    end
    return x
  end,
  without = function(n)
    local x = 1.5
    for i = 1, n do
    end
    return x
  end,
}

-- the last of a function that is inlined, with others around it
local function first(a) return a + 1.5 end
local function root(x)
  return sqrt(sqrt(x + 3) + 2) --! inlined
end
local function second(b) return b - 0.5 end
W.inlined = {
  all = function(n)
    local x, a, b = 1.5, 0, 0
    for i = 1, n do
      a = first(a)
      x = root(x) --? inlined
      b = second(b)
    end
    return x + a + b
  end,
  without = function(n)
    local x, a, b = 1.5, 0, 0
    for i = 1, n do
      a = first(a)
      b = second(b)
    end
    return x + a + b
  end,
}

-- a branch behind it, which does not depend on it
W.branch = {
  all = function(n)
    local x, y = 1.5, 0
    for i = 1, n do
      x = 1.1 / (1.2 / x) --! branch
      if i % 2 == 0 then
        y = y + 1.5
      end
    end
    return x + y
  end,
  without = function(n)
    local x, y = 1.5, 0
    for i = 1, n do
      if i % 2 == 0 then
        y = y + 1.5
      end
    end
    return x + y
  end,
}

-- a table that no cache holds, in random order
local next_of
local function follow(p)
  return next_of[p] --! chase
end
W.chase = {
  prepare = function()
    local size, seed = 2 ^ 21, 1
    next_of = {}
    for i = 1, size do next_of[i] = i end
    for i = size, 2, -1 do -- one cycle (Sattolo)
      seed = (seed * 16807) % 2147483647
      local j = seed % (i - 1) + 1
      next_of[i], next_of[j] = next_of[j], next_of[i]
    end
  end,
  all = function(n)
    local p, a, b = 1, 0, 0
    for i = 1, n do
      a = first(a)
      p = follow(p)
      b = second(b)
    end
    return p + a + b
  end,
  without = W.inlined.without,
}

-- what is read was written in part just before, and cannot be had before that is in the cache
local u = jit and require("ffi").new("union { uint8_t byte[4]; uint32_t word; }")
W.forward = {
  all = function(n)
    local x, y = 1, 0
    for i = 1, n do
      u.byte[1] = x
      x = u.word % 256 --! forward
      y = y + 1.5
    end
    return x + y
  end,
  without = function(n)
    local x, y = 1, 0
    for i = 1, n do
      u.byte[1] = x
      y = y + 1.5
    end
    return x + y
  end,
}

local w, seconds = W[arg[1]], tonumber(arg[2])
if w.prepare then w.prepare() end
local n, all, without = 1000, {}, {}
repeat -- half a millisecond
  n = n * 2
  local t = clock()
  w.all(n)
until clock() - t > 0.0005
for k = 1, 301 do
  local t = clock()
  w.all(n)
  local u = clock()
  w.without(n)
  all[k], without[k] = u - t, clock() - u
end
table.sort(all)
table.sort(without)
print(1 - without[151] / all[151]) -- medians: a turn that the machine interrupted takes any time
print "ready"
io.stdout:flush()
io.read()
local start = clock()
repeat w.all(n) until clock() - start > seconds

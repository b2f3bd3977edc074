-- SPDX-License-Identifier: BSD-2-Clause
-- usage: compiled.lua WORKLOAD SECONDS, under LuaJIT with its JIT compiler on
-- Loops whose time is known by their divisions: each waits for the one before, and all take the same
-- time. There is no guard between the lines: the snapshots do not distinguish them.
-- "--= N": divisions that a line has; "--@ NAME": the function that it belongs to, which is named where it is
-- called.
local two, six, twelve

function two(x) --@ two
  return 2 / (3 / x) --= 2
end
function six(x) --@ six
  return 2 / (3 / (5 / (3 / (2 / (5 / x))))) --= 6
end
function twelve(x) --@ twelve
  return 2 / (3 / (5 / (3 / (2 / (5 / (7 / (11 / (13 / (11 / (7 / (13 / x))))))))))) --= 12
end

local function sink(x) assert(x == x) end

local W = {}

function W.lines(n)
  local x = 1.5
  for i = 1, n do
    x = 2 / (3 / x) --= 2
    x = 3 / (2 / (5 / (3 / (2 / (5 / x))))) --= 6
    x = 2 / (3 / (5 / (3 / (2 / (5 / (7 / (11 / (13 / (11 / (7 / (13 / x))))))))))) --= 12
    x = x * 1.5
  end
  sink(x)
end

-- inlined: the trace knows them by name only when it begins
local f2, f6, f12 = two, six, twelve
function W.functions(n)
  local x = 1.5
  for i = 1, n do
    x = f2(x)
    x = f6(x)
    x = f12(x) * 1.5
  end
  sink(x)
end

local object = {}
object.__index = object
function object:two() self.x = 2 / (3 / self.x) end --= 2
function object:six() self.x = 3 / (2 / (5 / (3 / (2 / (5 / self.x))))) end --= 6
function object.__add(a, b) --@ add
  a.x = b / (3 / (5 / (3 / (b / (5 / (7 / (11 / (13 / (11 / (7 / (13 / a.x))))))))))) * 1.5 --= 12
  return a
end
function W.objects(n)
  local o = setmetatable({x = 1.5}, object)
  for i = 1, n do
    o:two()
    o:six()
    o = o + 2
  end
  sink(o.x)
end

-- the same once more, of other objects: found in the same metatable
local vector = {}
function vector.__sub(a, b) --@ minus
  a.x = b / (3 / (b / a.x)) * 4 --= 6, of two calls
  return a
end
function vector.__lt(a, b) --@ less
  a.x = 2 / (3 / (5 / (3 / (2 / (5 / (7 / (11 / (13 / (11 / (7 / (13 / a.x))))))))))) * 1.5 --= 12
  return b
end
function vector.__unm(a) --@ negative
  a.x = 2 / (3 / a.x) --= 2
  return a
end
function W.metamethods(n)
  local o, p = setmetatable({x = 1.5}, vector), setmetatable({x = 1.5}, vector)
  for i = 1, n do
    o = o - 2 -- minus
    p.x = o.x
    p = p - 2 -- minus
    o.x = p.x
    if o < p then -- less
      o = -o -- negative
    end
  end
  sink(o.x)
end

function W.protected(n)
  local x, ok = 1.5
  for i = 1, n do
    ok, x = pcall(f2, x)
    ok, x = xpcall(f6, print, x)
    ok, x = pcall(f12, x)
    x = x * 1.5
  end
  sink(x)
end

-- a method that is looked up again, behind a store which may have been to its place; and one in another's place,
-- still below pcall()
local machine, keys = {}, {"even", "odd"}
machine.__index = machine
function machine:half() --@ half
  self.x = 2 / (3 / (5 / self.x)) --= 6, of two calls
end
function machine:double() --@ double
  self.x = 2 / (3 / self.x) --= 2
end
function machine:rest() --@ rest
  self.x = 2 / (3 / (5 / (3 / (2 / (5 / (7 / (11 / (13 / (11 / (7 / (13 / self.x))))))))))) * 1.5 --= 12
end
function machine:step(key)
  self:half()
  self.seen[key] = self.x
  self:half()
  return self:rest()
end
function W.tailed(n)
  local m = setmetatable({x = 1.5, seen = {}}, machine)
  for i = 1, n do
    pcall(m.step, m, keys[i % 2 + 1]) -- rest
    m:double()
  end
  sink(m.x)
end

local function pass(f, ...)
  return f(...)
end
local function last(...)
  local x
  for i = 1, select("#", ...) do x = select(i, ...) end
  return x
end
function W.varargs(n)
  local x = 1.5
  for i = 1, n do
    x = pass(f2, last(i, x))
    x = pass(f6, x)
    x = pass(f12, x) * 1.5
  end
  sink(x)
end

-- a guarded branch: its snapshot stands where it does not go
function W.branches(n)
  local x = 1.5
  for i = 1, n do
    if i % 2 == 0 then
      x = 2 / (2 / (5 / (5 / (3 / (3 / (7 / (7 / (2 / (2 / (3 / (3 / x))))))))))) --= 12
    else
      x = 3 / (3 / (5 / (5 / (2 / (2 / x))))) --= 6
    end
  end
  sink(x)
end

local ok, ffi = pcall(require, "ffi")
if ok then
  local p = ffi.new("struct { double a, b; float c; }[16]")
  for i = 0, 15 do p[i].a, p[i].b = 1.5, 1.5 end
  local function first(q) q.a = 2 / (2 / q.a) end --= 2
  local function second(q)
    q.b = 5 / (5 / (2 / (2 / (3 / (3 / q.a))))) --= 6
    q.a = 2 / (2 / (5 / (5 / (7 / (7 / (11 / (11 / (13 / (13 / (3 / (3 / q.b))))))))))) --= 12
  end
  function W.ffi(n)
    for i = 1, n do
      local q = p[3]
      first(q)
      second(q)
    end
    sink(p[3].a)
  end

  -- the inner loops' bounds are constant: they have no guards, and the trace has all their turns
  function W.unrolled(n)
    local x = 1.5
    for i = 1, n do
      for dy = -1, 1 do
        for dx = -1, 1 do
          local q = p[(1 + dy) * 4 + dx + i % 4 + 2]
          x = 2 / (2 / (x + q.a)) - 1.5 --= 2
          x = 5 / (5 / (2 / (2 / (3 / (3 / (x + q.b)))))) - 1.5 --= 6
          x = 2 / (2 / (5 / (5 / (7 / (7 / (11 / (11 / (13 / (13 / (3 / (3 / x))))))))))) --= 12
        end
      end
    end
    sink(x)
  end

  local methods = {}
  function methods:two() self.x = 2 / (3 / self.x) end --= 2
  function methods:six() self.x = 3 / (2 / (5 / (3 / (2 / (5 / self.x))))) end --= 6
  local function plus(a, b) --@ plus
    a.x = b / (3 / (5 / (3 / (b / (5 / (7 / (11 / (13 / (11 / (7 / (13 / a.x))))))))))) * 1.5 --= 12
    return a
  end
  local point = ffi.metatype("struct { double x; }", {__index = methods, __add = plus})
  function W.metatype(n)
    local q = point(1.5)
    for i = 1, n do
      q:two()
      q:six()
      q = q + 2 -- plus
    end
    sink(q.x)
  end
end

-- three C functions that are called in one place of the stack; the last one's call ends the trace
do
  local format, rep, find = string.format, string.rep, string.find
  function W.stitched(n)
    local s = 0
    for i = 1, n, 1000 do
      s = s + #format("%d", i % 8)
      s = s + #rep("ab", 4000 + i % 8) -- long
      s = s + (find("ab", "z[yY]") or 0)
    end
    sink(s)
  end
end

-- built-in functions that leave no instruction, before some that do: these are counted, square roots and numbers
do
  local sqrt, format = math.sqrt, string.format
  local function checked(x)
    if type(x) ~= "number" then error("a number") end
    return x
  end
  local function same(x)
    return rawequal(x, x) and x
  end
  local function power(x)
    return x ^ 1
  end
  function W.roots(n)
    local x = 1.5
    for i = 1, n do
      x = sqrt(checked(sqrt(checked(x)))) --= 2
      x = sqrt(same(sqrt(same(sqrt(same(sqrt(same(sqrt(same(sqrt(same(x)))))))))))) --= 6
      x = sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(sqrt(power(x)))))))))))))))))))))))) --= 12
      x = x * 1.5
    end
    sink(x)
  end
  local function digit(i)
    return #format("%d", i % 8)
  end
  function W.texts(n)
    local s = 0
    for i = 1, n, 1000 do
      local y = i % 7 / 3 -- strings that exist: the collector has nothing to do
      s = s + digit(i)
      s = s + #format("%.25e%.25e", y, y) --= 2
      s = s + digit(i + 1)
      s = s + #format("%.25e%.25e%.25e%.25e%.25e%.25e", y, y, y, y, y, y) --= 6
      s = s + digit(i + 2)
      s = s + #format("%.25e%.25e%.25e%.25e%.25e%.25e%.25e%.25e%.25e%.25e%.25e%.25e", y, y, y, y, y, y, y, y, y, y, y, y) --= 12
    end
    sink(s)
  end
end

-- the collector's time: in the function that allocates, which is inlined into the loop
do
  local kept
  local function pair(i)
    return { i, i + 1 } -- allocated
  end
  function W.allocates(n)
    local s = 0
    for i = 1, n do
      kept = pair(i)
      s = s + kept[1]
    end
    sink(s)
  end
end

local work, seconds = W[arg[1]], tonumber(arg[2])
print("ready")
io.stdout:flush()
io.read()
local start = os.clock()
repeat work(1000000) until os.clock() - start > seconds

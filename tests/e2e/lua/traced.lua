-- SPDX-License-Identifier: BSD-2-Clause
-- For `luabpf trace`: the same lines in each run, whatever the version. It runs a part of them.
local function fail(n)
  if n == 1 then
    error("end")
  end
  coroutine.yield(n)
  return fail(n - 1)
end

local function errors()
  local co = coroutine.create(fail)
  coroutine.resume(co, 5)
  while true do
    local ok = coroutine.resume(co)
    if not ok then break end
  end
  assert(not pcall(fail, 1))
  assert(not pcall(pcall))
  assert(xpcall(function() error({}) end, function(e) return type(e) end) == false)
  for i = 1, 3 do pcall(function() local x = nil; return x.y end) end
end

local function count(n)
  local each = coroutine.wrap(function()
    for i = 1, n do coroutine.yield(i) end
  end)
  return each -- no tail call: line_hook.lua has a wrap() in Lua
end

local function coroutines()
  local sum = 0
  for i in count(50) do sum = sum + i end
  for i in count(3) do
    for k in count(i) do
      sum = sum + k
    end
  end
  local left = count(5)
  left() left()
  assert(sum == 1275 + 10)
end

local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end

local function loop(n, acc)
  if n == 0 then return acc end
  return loop(n - 1, acc + n)
end

local function vararg(...)
  local n = select("#", ...)
  if n == 0 then
    return 0
  end
  return 1 + vararg(select(2, ...))
end

local function meta()
  local t = setmetatable({}, {
    __index = function(_, k) return k .. "!" end,
    __add = function(a, b)
      return 7
    end,
  })
  local a, b = tostring(t.x), t + t
  return a, b
end

local function never(x,
    y)
  for i = 1, 10 do
    if x > i and
        y then
      return i
    else
      x = x - 1
    end
  end
  while true do
    if y then break end
  end
  repeat
    local z = x
  until z
  return function(a)
    return a
  end
end

local one, two = function() return 1 end, function() return 2 end

errors()
coroutines()
assert(fib(12) == 144)
assert(loop(100, 0) == 5050)
assert(vararg(1, 2, 3) == 3)
meta()
local t = {}
for i = 1, 40 do t[i] = (i * 7) % 41 end
table.sort(t, function(a, b) return a < b end)
assert(t[1] == 1)
for w in ("a b c"):gmatch("%a") do t[w] = one() end
assert(not pcall(never))

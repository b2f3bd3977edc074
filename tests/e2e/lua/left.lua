-- SPDX-License-Identifier: BSD-2-Clause
-- usage: left.lua WORKLOAD SECONDS, under LuaJIT with its JIT compiler on
-- Traces that are left all the time: at their ends, for C functions around which they are stitched, by exits, for
-- other traces.
local W = {}

local function sum(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

function W.coroutines(n)
  local function count(m)
    return coroutine.wrap(function()
      for i = 1, m do coroutine.yield(i) end
    end)
  end
  local s = 0
  for i = 1, n / 100 do
    for v in count(100) do s = s + v end
  end
end

-- The trace of this loop ends at its head, exit by exit: side traces are not made of them.
function W.exits(n)
  local kinds, s = {}, 0
  for i = 1, 40 do kinds[i] = i % 2 == 0 and i or tostring(i) end
  for i = 1, n do
    local v = kinds[i % 40 + 1] --= leaves
    if type(v) == "string" then v = #v end
    s = s + v
  end
end

function W.recursion(n)
  local function down(i)
    if i == 0 then return 0 end
    local r = down(i - 1)
    return r + 1
  end
  local function fib(i)
    if i < 2 then return i end
    return fib(i - 1) + fib(i - 2)
  end
  for i = 1, n / 200 do
    down(60)
    fib(10)
  end
end

function W.loops(n)
  local function leaf(i)
    for j = 1, 3 do
      if j + i % 5 == 4 then return j end
    end
    return i
  end
  local function twice(i)
    local r = leaf(i)
    return r * 2
  end
  local s = 0
  for i = 1, n / 4 do
    for j = 1, i % 9 do s = s + twice(j + i) end
  end
end

local work, seconds = W[arg[1]], tonumber(arg[2])
if arg[1] == "exits" then require("jit").opt.start("hotexit=60000") end
print("ready")
io.stdout:flush()
io.read()
local start = os.clock()
if work then
  repeat work(20000) until os.clock() - start > seconds
else -- stitched
  local k = 0
  while os.clock() - start < seconds do
    k = k + 1
    sum(300)
  end
end

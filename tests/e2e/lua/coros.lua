-- SPDX-License-Identifier: BSD-2-Clause
local create, resume, yield, wrap, status, running =
  coroutine.create, coroutine.resume, coroutine.yield, coroutine.wrap, coroutine.status, coroutine.running

--* coroutine.resume > producer, outer, inner, short, guarded
--* coroutine.wrap_aux > counter, walk
--* iterator > counter
--* iter > walk

local function producer()
  local i = 0
  while true do
    for k = 1, 10 do i = i + k % 3 end
    yield(i) --> coroutine.yield
  end
end

local co = create(producer)
local function generators(n)
  local s = 0
  for i = 1, n do
    local _, v = resume(co) --> coroutine.resume
    s = s + v
  end
  return s
end

local function counter()
  for i = 1, 8 do
    yield(i) --> coroutine.yield
  end
end

local function wraps(n)
  local s = 0
  for i = 1, n do
    for v in wrap(counter) do --> coroutine.wrap, coroutine.wrap_aux, iterator
      s = s + v
    end
  end
  return s
end

local function inner()
  local s = 0
  for i = 1, 30 do s = s + i % 5 end
  yield(s) --> coroutine.yield
  return s
end

local function outer()
  local c = create(inner) --> coroutine.create
  local _, a = resume(c) --> coroutine.resume
  yield(a) --> coroutine.yield
  resume(c) --> coroutine.resume
end

local function nested(n)
  for i = 1, n do
    local c = create(outer) --> coroutine.create
    resume(c) --> coroutine.resume
    resume(c) --> coroutine.resume
  end
end

local here = running()
local function short(x)
  return x + 1
end

local function shorts(n)
  local x = 0
  for i = 1, n do
    local c = create(short) --> coroutine.create
    local _, y = resume(c, x) --> coroutine.resume
    x = y
    if status(c) ~= "dead" or running() ~= here then error("no") end --> coroutine.status, coroutine.running
  end
  return x
end

local function walk(t)
  if type(t) == "table" then --> type
    walk(t[1]) --> walk
    walk(t[2]) --> walk
  else
    yield(t) --> coroutine.yield
  end
end

local tree = { { 1, 2 }, { { 3, 4 }, 5 } }
local function trees(n)
  local s = 0
  for i = 1, n do
    local iter = wrap(walk) --> coroutine.wrap
    local v = iter(tree) --> coroutine.wrap_aux, iter
    while v do
      s = s + v
      v = iter() --> coroutine.wrap_aux, iter
    end
  end
  return s
end

local function risky(x)
  yield(x) --> coroutine.yield
  error("no") --> error
end
--* pcall > risky
local function guarded(x)
  pcall(risky, x) --> pcall
end

local function protected(n)
  for i = 1, n do
    local c = create(guarded) --> coroutine.create
    resume(c, i) --> coroutine.resume
    resume(c) --> coroutine.resume
  end
end

return { "generators", generators, "wraps", wraps, "nested", nested, "shorts", shorts, "trees", trees,
  "protected", protected }

-- SPDX-License-Identifier: BSD-2-Clause
-- Coroutines, C functions and metamethods inside each other; coroutines that end in every way.
local create, resume, yield, wrap = coroutine.create, coroutine.resume, coroutine.yield, coroutine.wrap
local pcall, error, sort, gsub = pcall, error, table.sort, string.gsub

--* coroutine.resume > ranks, maps, values, sums, closed, fails, stays
--* pcall > raise, steps
--* table.sort > less
--* string.gsub > map
--* nameless > fails

local function spin()
  local s = 0
  for i = 1, 20 do s = s + i % 7 end
  return s
end

-- a comparison that resumes a coroutine
local function ranks()
  while true do
    spin() --> spin
    yield(1) --> coroutine.yield
  end
end
local ranking = create(ranks)
local function less(a, b)
  resume(ranking) --> coroutine.resume
  return a < b
end
local function sorts(n)
  for k = 1, n do
    local t = {}
    for i = 1, 12 do t[i] = i * 7919 % 31 end
    sort(t, less) --> table.sort
  end
end

-- a replacement that resumes a coroutine
local function maps()
  while true do
    spin() --> spin
    yield("x") --> coroutine.yield
  end
end
local mapping = create(maps)
local function map(c)
  local _, r = resume(mapping) --> coroutine.resume
  return r
end
local function replaces(n)
  for i = 1, n do
    gsub("some text", "%w", map) --> string.gsub
  end
end

-- a metamethod that does
local function values()
  while true do
    spin() --> spin
    yield(2) --> coroutine.yield
  end
end
local valuing = create(values)
local lazy = setmetatable({}, { __index = function(t, k) --: lookup
  local _, v = resume(valuing) --> coroutine.resume
  return v
end })
local function lookups(n)
  local s = 0
  for i = 1, n do
    s = s + lazy[i] --> lookup
  end
  return s
end

-- coroutines that end by an error, caught inside, by resume, and outside of wrap
local function raise()
  spin() --> spin
  error("no") --> error
end
local function fails()
  pcall(raise) --> pcall
  raise() --> raise
end
local function raises(n)
  for i = 1, n do
    local c = create(fails) --> coroutine.create
    resume(c) --> coroutine.resume
    local raising = wrap(fails) --> coroutine.wrap
    pcall(raising) --> pcall
  end
end
--* pcall > nameless

-- yields across pcall and metamethods, which 5.1 cannot
local function steps()
  spin() --> spin
  yield(1) --> coroutine.yield
  spin() --> spin
end
local adding = setmetatable({}, { __add = function(a, b) --: add
  spin() --> spin
  yield(1) --> coroutine.yield
  local s = spin() --> spin
  return s
end })
local function sums()
  pcall(steps) --> pcall
  local s = _VERSION ~= "Lua 5.1" and adding + 1 --> add
  return s
end
local function across(n)
  for i = 1, n do
    local c = create(sums) --> coroutine.create
    while resume(c) do end --> coroutine.resume
  end
end

-- coroutines that are left alone, or closed where that can be
local function stays()
  while true do
    spin() --> spin
    yield() --> coroutine.yield
  end
end
local function leaves(n)
  for i = 1, n do
    local c = create(stays) --> coroutine.create
    resume(c) --> coroutine.resume
    resume(c) --> coroutine.resume
    if coroutine.close then
      coroutine.close(c) --> coroutine.close
    end
  end
end

return { "sorts", sorts, "replaces", replaces, "lookups", lookups, "raises", raises, "across", across,
  "leaves", leaves }

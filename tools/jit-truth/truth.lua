-- SPDX-License-Identifier: BSD-2-Clause
-- usage: truth.lua PROGRAM.lua SECONDS, under any Lua
-- Measures how much of a program's time each of its marked lines has, by leaving that line out. A line is
-- marked by "--@" at its end, a call of a function by "--^"; behind the mark stands what is left of the line
-- when it is left out. The program gets a table that all its variants share, and returns a function of the
-- number of turns.
-- Prints "line LINE KIND SHARE ERROR" for each, then "ready"; runs the program for SECONDS of CPU time at a
-- line of input, prints "done"; at another does so once more under the VM's own profiler, where it has one,
-- and prints "top COUNT STACK" for what that shows.
local path, seconds = arg[1], tonumber(arg[2])
local clock, floor, sort = os.clock, math.floor, table.sort
local load = loadstring or load
local ROUNDS, ROUND = 100, 0.002 -- seconds of the whole program in each

local text, marks = {}, {}
for line in io.lines(path) do
  text[#text + 1] = line
  local kind, rest = line:match("%-%-([@^])(.*)$")
  if kind then marks[#marks + 1] = {line = #text, kind = kind, rest = rest} end
end

local shared = {}
local function build(mark, name)
  local kept
  if mark then
    kept, text[mark.line] = text[mark.line], mark.rest
  end
  local f = assert(load(table.concat(text, "\n"), "@" .. name))(shared)
  if mark then text[mark.line] = kept end
  return f
end

local all = build(nil, path)
for _, mark in ipairs(marks) do
  mark.f, mark.shares = build(mark, "without"), {}
end

local function time(f, n)
  local start = clock()
  f(n)
  return clock() - start
end

local n = 500
repeat
  n = n * 2
until time(all, n) > ROUND
for _ = 1, 5 do -- the compiler has done what it does
  all(n)
  for _, mark in ipairs(marks) do mark.f(n) end
end
for _ = 1, ROUNDS do
  local before = time(all, n)
  for _, mark in ipairs(marks) do
    local without = time(mark.f, n)
    local after = time(all, n)
    mark.shares[#mark.shares + 1] = 1 - 2 * without / (before + after)
    before = after
  end
end

-- The median and its standard error, by the distance of the quartiles: a round in which another process had the
-- caches, or the collector ran, does not matter.
for _, mark in ipairs(marks) do
  local s = mark.shares
  sort(s)
  local quarter = floor(#s / 4)
  local err = 1.253 * (s[#s - quarter] - s[quarter + 1]) / 1.349 / (#s) ^ 0.5
  print(("line %d %s %.5f %.5f"):format(mark.line, mark.kind, s[floor(#s / 2) + 1], err))
end

local function run()
  local start = clock()
  repeat all(n) until clock() - start > seconds
end

local function wait(word)
  print(word)
  io.stdout:flush()
  return io.read()
end

wait("ready")
run()
local has, profile = pcall(require, "jit.profile")
if wait("done") and has then
  local counts = {}
  profile.start("li1", function(thread, samples)
    local stack = profile.dumpstack(thread, "pl;", 12)
    counts[stack] = (counts[stack] or 0) + samples
  end)
  run()
  run()
  profile.stop()
  for stack, count in pairs(counts) do print("top " .. count .. " " .. stack) end
end

-- SPDX-License-Identifier: BSD-2-Clause
-- A target that does a fixed amount of CPU-bound work on request, and answers with the time it took.
-- usage: luajit work.lua; commands, a line each:
--   unit    work; answers "CPU WALL" in seconds
--   jp      starts LuaJIT's own profiler (-jp=i1), nojp stops it; answers "ok"
local ffi = require("ffi")
ffi.cdef[[
typedef struct { long sec, nsec; } bench_time;
int clock_gettime(int clock, bench_time *t);
]]
local now_ = ffi.new("bench_time")
local MONOTONIC, PROCESS_CPU = 1, 2

local function now(clock)
  ffi.C.clock_gettime(clock, now_)
  return tonumber(now_.sec) + tonumber(now_.nsec) * 1e-9
end

-- Calls, tables, strings and arithmetic, some six frames deep.
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function sieve(n)
  local composite, count = {}, 0
  for i = 2, n do
    if not composite[i] then
      count = count + 1
      for j = i * i, n, i do composite[j] = true end
    end
  end
  return count
end

local function words(n)
  local seen = {}
  for i = 1, n do seen[("w" .. i % 97):rep(2)] = i end
  return seen
end

local function unit(rounds)
  local x = 0
  for _ = 1, rounds do
    x = x + fib(13) + sieve(600)
    words(60)
  end
  return x
end

-- As many rounds as take 15 ms here.
local function calibrate()
  local rounds = 4
  while true do
    local start = now(PROCESS_CPU)
    unit(rounds)
    local took = now(PROCESS_CPU) - start
    if took > 0.02 then return math.ceil(rounds * 0.015 / took) end
    rounds = rounds * 2
  end
end

local rounds = calibrate()
local commands = {}

function commands.unit()
  local cpu, wall = now(PROCESS_CPU), now(MONOTONIC)
  unit(rounds)
  return ("%.9f %.9f"):format(now(PROCESS_CPU) - cpu, now(MONOTONIC) - wall)
end

function commands.jp()
  require("jit.p").start("i1", "/dev/null")
  return "ok"
end

function commands.nojp()
  require("jit.p").stop()
  return "ok"
end

io.stdout:setvbuf("line")
print("ready")
for line in io.lines() do print(commands[line]()) end

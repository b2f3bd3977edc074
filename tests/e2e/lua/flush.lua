-- SPDX-License-Identifier: BSD-2-Clause
-- usage: flush.lua SECONDS, under LuaJIT with the JIT compiler on
-- Two functions, each with one that it calls, take turns. All compiled code is flushed before each turn and collected, so
-- that the traces of the one lie where the other's were, under the same numbers.
local seconds = tonumber(arg[1])
local clock = os.clock

local function inner1(s, i)
  if i % 2 == 0 then return s + i % 7 + i % 11 + i % 13 end
  return s + i % 17 + i % 19 + i % 23
end

local function inner2(s, i)
  if i % 2 == 0 then return s + i % 29 + i % 31 + i % 37 end
  return s + i % 41 + i % 43 + i % 47
end

local function outer1(n)
  local s = 0
  for i = 1, n do
    s = inner1(s, i)
  end
  return s
end

local function outer2(n)
  local s = 0
  for i = 1, n do
    s = inner2(s, i)
  end
  return s
end

local function turn(outer, least)
  local start = clock()
  repeat
    local s = outer(5000)
  until clock() - start > least
end

local function flush()
  jit.flush()
  collectgarbage()
  collectgarbage()
end

jit.off(turn)
jit.off(flush)
print("ready")
io.stdout:flush()
io.read()
local start = clock()
while clock() - start < seconds do
  flush()
  turn(outer1, 0.006)
  flush()
  turn(outer2, 0.006)
end

-- SPDX-License-Identifier: BSD-2-Clause
-- usage: grows.lua SECONDS
-- Stacks that grow and overflow: runaway() recurses without an end and is caught, deep() recurses 5,000 deep; in a new
-- coroutine each time, and in the main thread. Prints the CPU time of all, of inside(), and of the calls of coroutines
-- without what they ran.
local clock, used, resuming = os.clock, 0, 0

local function runaway(n) return 1 + runaway(n + 1) end
local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end

local function inside()
  local begin = clock()
  pcall(runaway, 1)
  for _ = 1, 6 do deep(5000) end
  used = used + clock() - begin
  return 1
end

local function spin() local x = 0 for i = 1, 20000 do x = x + i % 7 end return x end
local function beside() local x = 0 for _ = 1, 4 do x = x + spin() end return x end

print "ready"
io.stdout:flush()
io.read()
local start = clock()
repeat
  local co = coroutine.wrap(inside)
  local begin, inner = clock(), used
  co()
  resuming = resuming + clock() - begin - (used - inner)
  inside()
  beside()
until clock() - start > tonumber(arg[1])
print(clock() - start, used, resuming)

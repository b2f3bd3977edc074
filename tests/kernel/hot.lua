-- SPDX-License-Identifier: BSD-2-Clause
-- Spends 70 % of SECONDS of CPU time in heavy() and 30 % in light(), then ends. Each round has another length: one as
-- long as the time between two samples would be hit at the same place each time.
-- usage: hot.lua SECONDS
-- Says "ready" first, and begins when its standard input ends.

local clock = os.clock

local function heavy(n)
  local x = 0
  for i = 1, 7 * n do x = (x * 3 + i) % 65537 end
  return x
end

local function light(n)
  local x = 0
  for i = 1, 3 * n do x = (x * 3 + i) % 65537 end
  return x
end

print("ready")
io.stdout:flush()
io.read("*a")

local finish, seed = clock() + tonumber(arg[1]), 1
repeat
  seed = seed * 16807 % 2147483647
  local n = 1 + seed % 2000
  heavy(n)
  light(n)
until clock() >= finish

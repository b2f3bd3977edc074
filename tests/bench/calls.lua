-- SPDX-License-Identifier: BSD-2-Clause
-- Prints the ns of CPU time that a call takes, at least of some rounds. usage: lua calls.lua [hook]
-- hook: under a call hook in Lua that counts by function, as in "Programming in Lua".
if jit then jit.off() end
local CALLS, ROUNDS = 300000, 5
local counts = {}

local function hook()
  local f = debug.getinfo(2, "f").func
  counts[f] = (counts[f] or 0) + 1
end

local function f() end

if arg[1] == "hook" then debug.sethook(hook, "c") end
local least = math.huge
for _ = 1, ROUNDS do
  local start = os.clock()
  for _ = 1, CALLS do f() end
  least = math.min(least, os.clock() - start)
end
debug.sethook()
io.stderr:write(least / CALLS * 1e9, "\n")

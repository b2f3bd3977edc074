-- SPDX-License-Identifier: BSD-2-Clause
-- Prints the ns of CPU time that a line takes, at least of some rounds. usage: lua lines.lua [hook]
-- hook: under a line hook in Lua that counts by source and line.
if jit then jit.off() end
local LOOPS, ROUNDS = 60000, 5
local hits = {}

local function hook(_, line)
  local source = debug.getinfo(2, "S").source
  local lines = hits[source]
  if not lines then
    lines = {}
    hits[source] = lines
  end
  lines[line] = (lines[line] or 0) + 1
end

if arg[1] == "hook" then debug.sethook(hook, "l") end
local least = math.huge
for _ = 1, ROUNDS do
  local start, x = os.clock(), 0
  for i = 1, LOOPS do
    x = x + i
    x = x - i
    x = x + 1
    x = x - 1
  end
  least = math.min(least, os.clock() - start)
end
debug.sethook()
io.stderr:write(least / LOOPS / 5 * 1e9, "\n")

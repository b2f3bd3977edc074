-- SPDX-License-Identifier: BSD-2-Clause
-- Spends 70 % of SECONDS of CPU time in heavy() and 30 % in light(), then ends.
-- usage: hot.lua SECONDS

local clock = os.clock

local function heavy()
  local x = 0
  for i = 1, 70000 do x = (x * 3 + i) % 65537 end
  return x
end

local function light()
  local x = 0
  for i = 1, 30000 do x = (x * 3 + i) % 65537 end
  return x
end

local finish = clock() + tonumber(arg[1])
repeat
  heavy()
  light()
until clock() >= finish

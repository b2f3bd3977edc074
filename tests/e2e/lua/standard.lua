-- SPDX-License-Identifier: BSD-2-Clause
-- For hosts/new_vm.c: most of a request is below functions of Lua's own, in C.
local function compare(a, b)
  local x = 0
  for i = 1, 20 do x = x + i end
  return a < b
end
local function replace(s)
  local x = 0
  for i = 1, 50 do x = x + i end
  return s
end
local function work()
  local t = {}
  for i = 1, 50 do t[i] = (i * 7919) % 101 end
  table.sort(t, compare)
  return (("hello world foo bar "):rep(5):gsub("%a+", replace))
end
for _ = 1, 5 do pcall(work) end

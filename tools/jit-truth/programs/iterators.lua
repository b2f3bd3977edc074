-- SPDX-License-Identifier: BSD-2-Clause
-- Loops over a closure, over ipairs() and over a function with a state.
local function upto(n)
  local i = 0
  return function()
    i = i + 1
    if i <= n then return i end
  end
end
local function step(n, i)
  if i < n then return i + 1 end
end
local list = {}
for i = 1, 20 do list[i] = i end
return function(n)
  local x = 1.5
  for i = 1, n, 60 do
    for j in upto(20) do
      x = 1.5 / (1.5 / (2.5 / (2.5 / x))) --@
    end
    for j, v in ipairs(list) do
      x = x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 --@
    end
    for j in step, 20, 0 do
      x = 2.5 / (2.5 / x) --@
    end
  end
  return x
end

-- SPDX-License-Identifier: BSD-2-Clause
-- A comparator that C calls.
local sort = table.sort
local sum = 1.5
local function less(a, b)
  local x = sum
  for i = 1, 20 do
    x = 1.5 / (1.5 / x) --@
  end
  sum = x
  return a < b
end
return function(n)
  local t = {}
  for i = 1, n, 100 do
    for j = 1, 10 do
      t[j] = j * 7 % 10
    end
    sort(t, less)
    for j = 1, 100 do
      sum = sum * 2 * 0.5 * 4 * 0.25 --@
    end
  end
  return sum
end

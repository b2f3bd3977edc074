-- SPDX-License-Identifier: BSD-2-Clause
-- A function that is made in each turn, and one that keeps its upvalue.
local function counter(x)
  return function(d)
    x = 1.5 / (1.5 / (x + d)) --@
    return x
  end
end
local kept = counter(1.5)
return function(n)
  local x = 1.5
  for i = 1, n, 10 do
    local function fresh(y)
      return 2.5 / (2.5 / (x + y)) --@ return x + y
    end
    for j = 1, 10 do
      x = fresh(0) --^
      x = kept(x * 0) + x - x --^
    end
  end
  return x
end

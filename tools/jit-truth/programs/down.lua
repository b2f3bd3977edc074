-- SPDX-License-Identifier: BSD-2-Clause
-- Recursion that is not in a tail: the traces go up and down.
local sqrt = math.sqrt
local function deep(x, d)
  x = 1.5 / (1.5 / x) --@
  if d > 0 then
    x = deep(x, d - 1)
  end
  x = sqrt(x + 3) --@
  return x
end
return function(n)
  local x = 1.5
  for i = 1, n, 16 do
    x = deep(x, 15)
  end
  return x
end

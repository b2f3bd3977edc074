-- SPDX-License-Identifier: BSD-2-Clause
-- Roots and a division, the last in their lines.
local sqrt = math.sqrt
return function(n)
  local x, y = 1.5, 0
  for i = 1, n do
    x = sqrt(x + 3) --@
    y = y + i
    x = sqrt(sqrt(x + 2)) --@
    x = 1.5 / x --@
  end
  return x + y
end

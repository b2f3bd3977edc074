-- SPDX-License-Identifier: BSD-2-Clause
-- Comparisons that wait for what was computed, and others that do not.
return function(n)
  local x, y, z = 1.5, 0, 0
  for i = 1, n do
    x = 1.5 / (1.5 / x) --@
    if y > i then
      z = z + 1
    end
    x = x * 2 * 0.5 * 4 * 0.25 --@
    if x > 100 then
      z = z - 1
    end
    y = y + 0.5
    x = 2.5 / (2.5 / x) --@
    if i < 0 then
      y = 0
    end
  end
  return x + y + z
end

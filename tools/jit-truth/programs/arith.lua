-- SPDX-License-Identifier: BSD-2-Clause
-- One chain of values through five lines of arithmetic.
return function(n)
  local x, y = 1.5, 0
  for i = 1, n do
    x = x + 1.25 - 1.25 + 0.5 - 0.5 + 0.75 - 0.75 --@
    x = x * 2 * 0.5 * 4 * 0.25 --@
    y = y + 1
    x = 1.5 / (1.5 / x) --@
    x = x - 2.5 + 2.5 --@
  end
  return x + y
end

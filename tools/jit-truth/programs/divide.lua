-- SPDX-License-Identifier: BSD-2-Clause
-- Divisions before, between and behind lines that wait for nothing.
return function(n)
  local x, y, z = 1.5, 0, 0
  for i = 1, n do
    y = y + 1.5
    x = 1.5 / (1.5 / x) --@
    z = z - 2.5
    y = y + 0.5
    x = 2.5 / (2.5 / (3.5 / (3.5 / x))) --@
  end
  return x + y + z
end

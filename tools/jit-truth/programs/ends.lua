-- SPDX-License-Identifier: BSD-2-Clause
-- Lines at the end of an inner loop, and behind it.
return function(n)
  local x, y = 1.5, 0
  for i = 1, n, 40 do
    for j = 1, 40 do
      y = y + j
      x = 1.5 / (1.5 / x) --@
    end
    x = 2.5 / (2.5 / (3.5 / (3.5 / x))) --@
    local k = 0
    while k < 40 do
      x = x * 2 * 0.5 * 4 * 0.25 --@
      k = k + 1
    end
  end
  return x + y
end

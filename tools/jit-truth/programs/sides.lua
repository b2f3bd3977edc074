-- SPDX-License-Identifier: BSD-2-Clause
-- Branches that are taken in turn: side traces.
return function(n)
  local x, y = 1.5, 0
  for i = 1, n do
    if i % 4 == 0 then
      x = 1.5 / (1.5 / (2.5 / (2.5 / (3.5 / (3.5 / x))))) --@
    elseif i % 4 == 1 then
      y = y + 1.5
      x = x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 --@
    elseif i % 4 == 2 then
      x = 1.25 / (1.25 / (2.25 / (2.25 / x))) --@
      y = y - 0.5
    else
      x = x + 1.25 - 1.25 + 0.5 - 0.5 + 0.75 - 0.75 --@
    end
  end
  return x + y
end

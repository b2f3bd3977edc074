-- SPDX-License-Identifier: BSD-2-Clause
-- Values that a loop carries from the end of one turn to the begin of the next.
return function(n)
  local x, y, z = 1.5, 2.5, 3.5
  local i = 0
  repeat
    y = x + 0.5 - 0.5 + 0.25 - 0.25 --@ y = x
    z = 1.5 / (1.5 / y) --@ z = y
    i = i + 1
    x = z * 2 * 0.5 * 4 * 0.25 --@ x = z
  until i >= n
  return x
end

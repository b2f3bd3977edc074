-- SPDX-License-Identifier: BSD-2-Clause
-- A function that calls itself twice.
local function walk(x, d)
  if d == 0 then
    return 1.5 / (1.5 / (2.5 / (2.5 / x))) --@ return x
  end
  x = walk(x, d - 1)
  x = x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 --@
  return walk(x, d - 1)
end
return function(n)
  local x = 1.5
  for i = 1, n, 64 do
    x = walk(x, 6)
  end
  return x
end

-- SPDX-License-Identifier: BSD-2-Clause
-- A branch that nobody can foresee, with functions on both sides that are inlined.
local function heads(x)
  return 1.5 / (1.5 / (2.5 / (2.5 / (3.5 / (3.5 / (4.5 / (4.5 / (5.5 / (5.5 / x))))))))) --@ return x
end
local function tails(x)
  return x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 * 16 * 0.0625 * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 * 16 * 0.0625 * 2 * 0.5 * 4 * 0.25 --@ return x
end
return function(n)
  local x, seed = 1.5, 1
  for i = 1, n do
    seed = (seed * 16807) % 2147483647
    if seed % 2 == 0 then
      x = heads(x) --^
    else
      x = tails(x) --^
    end
  end
  return x
end

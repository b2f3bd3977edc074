-- SPDX-License-Identifier: BSD-2-Clause
-- Inlined four deep, with guards at each level.
local function d(x, t)
  if t.stop then return 0 end
  return 1.5 / (1.5 / x) --@ return x
end
local function c(x, t)
  if t.halt then return 0 end
  x = d(x, t) --^
  return x * 2 * 0.5 * 4 * 0.25 --@ return x
end
local function b(x, t)
  x = c(x, t)
  return x + 1.25 - 1.25 + 0.5 - 0.5 --@ return x
end
local function a(x, t)
  x = 2.5 / (2.5 / x) --@
  return b(x, t)
end
return function(n)
  local x, t = 1.5, {}
  for i = 1, n do
    x = a(x, t)
    t[1] = x
  end
  return x
end

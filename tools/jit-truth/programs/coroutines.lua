-- SPDX-License-Identifier: BSD-2-Clause
-- Loops in two coroutines that take turns.
local wrap, yield = coroutine.wrap, coroutine.yield
local function divides(x)
  while true do
    for i = 1, 200 do
      x = 1.5 / (1.5 / x) --@
    end
    x = yield(x)
  end
end
local function multiplies(x)
  while true do
    for i = 1, 200 do
      x = x * 2 * 0.5 * 4 * 0.25 --@
    end
    x = yield(x)
  end
end
return function(n)
  local one, two, x = wrap(divides), wrap(multiplies), 1.5
  for i = 1, n, 200 do
    x = one(x) --^
    x = two(x) --^
  end
  return x
end

-- SPDX-License-Identifier: BSD-2-Clause
-- Calls through pcall().
local pcall = pcall
local function divide(x)
  return 1.5 / (1.5 / (2.5 / (2.5 / x))) --@ return x
end
local function multiply(x)
  x = x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 --@
  return x
end
return function(n)
  local x, ok = 1.5
  for i = 1, n do
    ok, x = pcall(divide, x) --^
    ok, x = pcall(multiply, x) --^
  end
  return x
end

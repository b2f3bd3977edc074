-- SPDX-License-Identifier: BSD-2-Clause
-- Arguments of any number.
local select = select
local function last(...)
  local x = select(select("#", ...), ...)
  return 1.5 / (1.5 / x) --@ return x
end
local function first(...)
  local x = ...
  x = 2.5 / (2.5 / (3.5 / (3.5 / x))) --@
  return x
end
return function(n)
  local x = 1.5
  for i = 1, n do
    x = last(1, 2, x) --^
    x = first(x, 2, 3) --^
  end
  return x
end

-- SPDX-License-Identifier: BSD-2-Clause
-- Methods of objects of two classes.
local A, B = {}, {}
A.__index, B.__index = A, B
function A:step(x)
  x = 1.5 / (1.5 / x) --@
  self.last = x
  return x
end
function B:step(x)
  self.count = self.count + 1
  return x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 --@ return x
end
return function(n)
  local x, o = 1.5, {}
  o[0], o[1] = setmetatable({}, A), setmetatable({count = 0}, B)
  for i = 1, n do
    x = o[i % 2]:step(x)
    x = 2.5 / (2.5 / x) --@
  end
  return x
end

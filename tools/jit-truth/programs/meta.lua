-- SPDX-License-Identifier: BSD-2-Clause
-- Operators, an index and a call that are metamethods.
local V = {}
V.__add = function(a, b)
  a.x = 1.5 / (1.5 / a.x) --@
  return a
end
V.__index = function(t, k)
  return t.x * 2 * 0.5 * 4 * 0.25 --@ return t.x
end
V.__call = function(t, d)
  t.x = 2.5 / (2.5 / (3.5 / (3.5 / t.x))) --@
  return t.x
end
return function(n)
  local v, s = setmetatable({x = 1.5}, V), 0
  for i = 1, n do
    v = v + 1 --^
    v.x = v.other --^
    s = s + v(1) --^
  end
  return s
end

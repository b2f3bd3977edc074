-- SPDX-License-Identifier: BSD-2-Clause
-- Objects that are never made, as nobody sees them.
local function vec(x, y)
  return {x = x, y = y}
end
local function scale(v)
  return vec(1.5 / (1.5 / v.x), v.y) --@ return vec(v.x, v.y)
end
local function turn(v)
  local y = v.x * 2 * 0.5 * 4 * 0.25 --@ local y = v.x
  return vec(y, v.x)
end
return function(n)
  local v = vec(1.5, 2.5)
  for i = 1, n do
    v = scale(v) --^ v = vec(v.x, v.y)
    v = turn(v) --^
    v = scale(v) --^ v = vec(v.x, v.y)
  end
  return v.x + v.y
end

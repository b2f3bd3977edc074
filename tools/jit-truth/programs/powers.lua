-- SPDX-License-Identifier: BSD-2-Clause
-- Powers: as the operator and the function; with the exponent 1 they leave no instruction.
local sin, pow = math.sin, math.pow
local function one(x) return x ^ 1 end
local function wave(x)
  return sin(x) --@ return x
end
local function half(x)
  return x ^ 0.5 --@ return x
end
local function cube(x)
  return x ^ 3 --@ return x
end
local function any(x, y)
  return x ^ y --@ return x
end
local function other(x, y)
  return pow(x, y) --@ return x
end
return function(n)
  local s = 0
  for i = 1, n do
    local c = one(i)
    s = s + wave(c)
    c = pow(i, 1)
    s = s + half(c)
    s = s + cube(i)
    s = s + any(i, 1.25) + any(1.5, i % 16)
    s = s + other(i, 1.3) + other(1.25, i % 16)
  end
  return s
end

-- SPDX-License-Identifier: BSD-2-Clause
local floor, sin, fmod = math.floor, math.sin, math.fmod
local bxor = (bit or bit32 or {}).bxor or math.max

local function lines(n)
  local x, y, z = 1, 2, 3
  mark() --> mark
  for i = 1, 40 * n do x = x + i * 3 - x % 7 end --= add
  lap("add") --> lap
  for i = 1, 20 * n do y = floor(y / 3) + fmod(i, 9) end --= floor --> math.floor, math.fmod
  lap("floor") --> lap
  for i = 1, 10 * n do z = sin(z) + (x % 17) ^ 0.5 end --= sin --> math.sin
  lap("sin") --> lap
  return x + y + z
end

local function whiles(n)
  local i, s = 0, 0
  while i < 20 * n do
    i = i + 1
    if i % 3 == 0 then
      s = bxor(s, i) --> bit.bxor, bit32.bxor, math.max
    elseif i % 3 == 1 then
      s = s + 1
    else
      s = s - 1
    end
  end
  return s
end

local function nested(n)
  local s = 0
  for i = 1, n do
    for j = 1, 5 do
      for k = 1, 3 do
        s = s + i * j - k
      end
    end
  end
  return s
end

local function divisions(n)
  local a, b = 7, 1
  repeat
    a = a % 3 + 1.5
    b = -a / 3
    n = n - 1
  until n <= 0
  return a + b
end

return { "lines", lines, "whiles", whiles, "nested", nested, "divisions", divisions }

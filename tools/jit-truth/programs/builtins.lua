-- SPDX-License-Identifier: BSD-2-Clause
-- Built-in functions that leave no instruction of their own, in functions that are inlined; after each, one that takes time.
local sin, cos, exp, log, floor, tonumber = math.sin, math.cos, math.exp, math.log, math.floor, tonumber
local names = setmetatable({}, {__index = {}})
local function check(x)
  if type(x) ~= "number" then error("a number") end
  return x
end
local function number(x)
  return tonumber(x)
end
local function whole(x)
  return floor(x)
end
local function same(x, y)
  return rawequal(x, y) and x or y
end
local function meta(x)
  return getmetatable(names) and x
end
local function wave(x)
  return sin(x) --@ return x
end
local function other(x)
  return cos(x) --@ return x
end
local function grow(x)
  return exp(x) --@ return x
end
local function least(x)
  return log(x) --@ return x
end
return function(n)
  local s = 0
  for i = 1, n do
    local c = check(i)
    s = s + wave(c)
    c = whole(i)
    s = s + other(c)
    c = number(i)
    s = s + least(c)
    c = same(i, n)
    s = s + grow((c - i) / n)
    c = meta(i)
    s = s + wave(c + 1)
  end
  return s
end

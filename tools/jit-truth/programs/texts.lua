-- SPDX-License-Identifier: BSD-2-Clause
-- Strings that are made in different ways, each by a function that is inlined.
local format, rep, upper, sub, char, concat = string.format, string.rep, string.upper, string.sub, string.char, table.concat
local parts = {"a", "b", "c", "d"}
local function digit(i)
  return #format("%d", i % 10) --@ return 1
end
local function many(i)
  return #format("%d %5.3f %s %x", i, i / 3, "abc", i) --@ return 12
end
local function letter(i)
  return #char(65 + i % 26) --@ return 1
end
local function joined(i)
  return #("k" .. i .. "v") --@ return 4
end
local function list(i)
  parts[4] = "d"
  return #concat(parts, ",", 1, 4) --@ return 7
end
local function part(i)
  return #sub("the quick brown fox", i % 8 + 1, 12) --@ return 8
end
local function again(i)
  return #rep("ab", i % 8) --@ return 8
end
return function(n)
  local s = 0
  for i = 1, n, 20 do
    local k = i % 64 -- strings that exist: the collector has nothing to do
    s = s + digit(k)
    s = s + many(k)
    s = s + letter(k)
    s = s + joined(k)
    s = s + list(k)
    s = s + part(k)
    s = s + again(k)
  end
  return s
end

-- SPDX-License-Identifier: BSD-2-Clause
local format, rep, gsub, gmatch, find, byte, char, sub, upper =
  string.format, string.rep, string.gsub, string.gmatch, string.find, string.byte, string.char, string.sub, string.upper

local function lines(n)
  local x
  collectgarbage("stop") --> collectgarbage
  mark() --> mark
  for i = 1, n do x = format("%d:%s:%5.2f", i, "text", i / 3) end --= format --> string.format
  lap("format") --> lap
  collectgarbage("restart") --> collectgarbage
  for i = 1, n do x = rep("ab", i % 50) end --= rep --> string.rep
  lap("rep") --> lap
  for i = 1, n do x = "a" .. i .. "b" .. i % 7 end --= concat
  lap("concat") --> lap
  for i = 1, n do x = upper("some text " .. i % 9) end --= upper --> string.upper
  lap("upper") --> lap
  return x
end

local function swap(c) --* string.gsub > swap
  return char(byte(c) + 1) --> string.byte, string.char
  --* string.gsub > string.char
end

local function callbacks(n)
  local x
  for i = 1, n do
    x = gsub("hello world", "%w", swap) --> string.gsub
  end
  return x
end

local text = rep("one two three ", 4)
local function matches(n)
  local s = 0
  for i = 1, n do
    for w in gmatch(text, "%a+") do --> string.gmatch, string.gmatch_aux, iterator
      s = s + #w
    end
    if find(text, "three o", 1, true) then --> string.find
      s = s + 1
    end
    s = s + byte(sub(text, i % 10 + 1)) --> string.byte, string.sub
  end
  return s
end

local function numbers(n)
  local s = 0
  for i = 1, n do
    s = s + tonumber(tostring(i) .. "0") --> tonumber, tostring
  end
  return s
end

local function buffers(n)
  local t = {}
  for i = 1, n do
    t[i < 64 and i or i % 64 + 1] = "item" .. i
  end
  return table.concat(t) --* run > table.concat --> table.concat
end

return { "lines", lines, "callbacks", callbacks, "matches", matches, "numbers", numbers, "buffers", buffers }

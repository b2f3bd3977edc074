-- SPDX-License-Identifier: BSD-2-Clause
local insert, remove, concat, sort = table.insert, table.remove, table.concat, table.sort

local function lines(n)
  local t, h, s = {}, {}, 0
  mark() --> mark
  for i = 1, 20 * n do t[i % 256 + 1] = i end --= write
  lap("write") --> lap
  for i = 1, 20 * n do s = s + (t[i % 256 + 1] or 0) end --= read
  lap("read") --> lap
  for i = 1, 4 * n do h["k" .. i % 64] = i end --= hash
  lap("hash") --> lap
  return s
end

local function library(n)
  local t = {}
  for i = 1, n do
    insert(t, i) --> table.insert
    insert(t, 1, i) --> table.insert
    if #t > 40 then
      remove(t) --> table.remove, remove
      remove(t, 1) --> table.remove, remove
    end
  end
  return concat(t, ",") --* run > table.concat --> table.concat
end

local function less(a, b)
  return a < b
end

local function sorts(n)
  local t = {}
  for i = 1, 5 * n do t[i] = i * 7919 % 1031 end
  sort(t, less) --> table.sort
  --* table.sort > less
  for i = 1, 5 * n do t[i] = i * 7919 % 1031 end
  sort(t) --> table.sort
end

local source = { 1, 2, 3, 4, 5, 6, a = 1, b = 2, c = 3 }

local function iterators(n)
  local s = 0
  for i = 1, n do
    for k, v in pairs(source) do --> pairs, next
      s = s + v
    end
    for _, v in ipairs(source) do --> ipairs, ipairs_aux, iterator
      s = s + v
    end
    for k, v in next, source do --> next
      s = s + v
    end
  end
  return s
end

local function range(state, i)
  if i < state then return i + 1 end
end

local function upto(n)
  return range, n, 0
end

local function stepper(n)
  local i = 0
  return function() --: step
    i = i + 1
    if i <= n then return i end
  end
end

local function generic(n)
  local s = 0
  for i = 1, n do
    for k in upto(5) do --> upto, range
      s = s + k
    end
    for k in stepper(5) do --> stepper, step
      s = s + k
    end
  end
  return s
end

local function objects(n)
  local list
  for i = 1, n do
    list = { next = list, value = { x = i, y = i } }
    if i % 100 == 0 then list = nil end
  end
  return list
end

return { "lines", lines, "library", library, "sorts", sorts, "iterators", iterators, "generic", generic,
  "objects", objects }

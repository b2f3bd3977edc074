-- SPDX-License-Identifier: BSD-2-Clause
local ffi = require("ffi")
ffi.cdef [[
int abs(int);
size_t strlen(const char *);
typedef int (*compare_t)(const int *, const int *);
void qsort(void *, size_t, size_t, compare_t);
double floor(double);
typedef struct { double x, y; } point_t;
]]
local C = ffi.C

local function compare(a, b) --*  > compare
  return a[0] < b[0] and -1 or a[0] > b[0] and 1 or 0 --> ffi.meta.__index
end
local callback = ffi.cast("compare_t", compare)
local array = ffi.new("int[64]")

local function sorts(n)
  for k = 1, n do
    for i = 0, 63 do array[i] = i * 7919 % 61 end --> ffi.meta.__newindex
    C.qsort(array, 64, 4, callback) --> ffi.meta.__call, ffi.clib.__index, compare
  end
end

local function calls(n)
  local s = 0
  mark() --> mark
  for i = 1, n do s = s + C.abs(-i) end --= abs --> ffi.meta.__call, ffi.clib.__index
  lap("abs") --> lap
  for i = 1, n do s = s + tonumber(C.strlen("some string")) end --= strlen --> ffi.meta.__call, ffi.clib.__index, tonumber
  lap("strlen") --> lap
  return s
end

local point
local mt = {
  __add = function(a, b) --: add
    return point(a.x + b.x, a.y + b.y) --> ffi.meta.__call, ffi.meta.__index
  end,
  __index = { norm = function(p) --: norm
    return p.x * p.x + p.y * p.y --> ffi.meta.__index
  end },
}
point = ffi.metatype("point_t", mt)

local function structs(n)
  local p, s = point(0, 0), 0 --> ffi.meta.__call
  for i = 1, n do
    p = p + point(i, 1) --> add, ffi.meta.__add, ffi.meta.__call
    s = s + p:norm() --> norm, ffi.meta.__index
  end
  return s
end

local function wide(n)
  local x = 1ULL
  for i = 1, n do
    x = x * 6364136223846793005ULL + 1442695040888963407ULL --> ffi.meta.__mul, ffi.meta.__add
  end
  return x
end

return { "sorts", sorts, "calls", calls, "structs", structs, "wide", wide }

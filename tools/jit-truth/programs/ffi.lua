-- SPDX-License-Identifier: BSD-2-Clause
-- LuaJIT only. Fields of a struct, elements of an array, and their integers.
local ffi = require("ffi")
local p = ffi.new("struct { double x, y; int32_t n; }", 1.5, 2.5, 1)
local a = ffi.new("double[256]")
for i = 0, 255 do a[i] = 1 + i / 256 end
return function(n)
  local x, k = 1.5, 0
  for i = 1, n do
    p.x = x
    x = 1.5 / (1.5 / p.x) --@
    k = (k + p.n) % 256
    a[k] = x * 2 * 0.5 * 4 * 0.25 --@ a[k] = x
    x = a[k] + p.y - 2.5 --@ x = a[k]
    p.y = 2.5 / (2.5 / (x - x + 2.5)) --@
    x = x * (p.y - 1.5)
  end
  return x
end

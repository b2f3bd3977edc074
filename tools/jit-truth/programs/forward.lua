-- SPDX-License-Identifier: BSD-2-Clause
-- LuaJIT only. What is read was written in part just before: the read waits for the store.
local ffi = require("ffi")
local u = ffi.new("union { uint8_t byte[4]; uint32_t word; }")
return function(n)
  local x, y = 1, 0
  for i = 1, n do
    u.byte[1] = x
    x = u.word % 256 + 1 --@ x = x + 0
    y = y + 1.5
    x = 1.5 / (1.5 / x) --@
  end
  return x + y
end

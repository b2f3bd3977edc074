-- SPDX-License-Identifier: BSD-2-Clause
-- LuaJIT only. Shifts and exclusive ors in a chain, inlined.
local bit = require("bit")
local bxor, lshift, rshift, rol, tobit = bit.bxor, bit.lshift, bit.rshift, bit.rol, bit.tobit
local function xorshift(x)
  x = bxor(x, lshift(x, 13)) --@
  x = bxor(x, rshift(x, 17)) --@
  return bxor(x, lshift(x, 5)) --@ return x
end
local function mix(h, x)
  h = bxor(rol(h, 5), x) --@ h = x
  return rol(bxor(rol(bxor(rol(h, 7), 99), 9), 77), 3) --@ return h
end
return function(n)
  local x = 1
  for i = 1, n do
    x = xorshift(x) --^
    x = mix(x, x) --^
  end
  return x
end

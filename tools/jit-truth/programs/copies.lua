-- SPDX-License-Identifier: BSD-2-Clause
-- LuaJIT only. Calls into the VM's C functions for memory and strings of the FFI.
local ffi = require("ffi")
local from, to = ffi.new("uint8_t[?]", 4096, 65), ffi.new("uint8_t[?]", 4096)
local function clear(i)
  ffi.fill(to, 1024 + i % 8, i % 4) --@
end
local function copy(i)
  ffi.copy(to, from, 1024 + i % 8) --@
end
local function text(i)
  return #ffi.string(from, 256 + i % 4) --@ return 256
end
local function count(i)
  return i * 1.5 / 1.5
end
return function(n)
  local s = 0
  for i = 1, n, 4 do
    s = s + count(i)
    clear(i)
    s = s + count(i)
    copy(i)
    s = s + count(i)
    s = s + text(i)
    s = s + count(i)
  end
  return s
end

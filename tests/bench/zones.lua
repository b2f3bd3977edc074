-- SPDX-License-Identifier: BSD-2-Clause
-- A target that enters and leaves zones, some 10,000 times a second.  usage: luajit|lua5.x zones.lua DEPTH
--
-- The zone stack has DEPTH - 1 or DEPTH zones.
package.path = arg[0]:match("^(.*)tests/bench/") .. "lua/?.lua;" .. package.path
local zone, depth = require("zone"), tonumber(arg[1])

local function spin(x)
  for i = 1, 5000 do x = x + i % 7 end
  return x
end

for i = 1, depth - 1 do zone("zone " .. i) end
io.stdout:write("ready\n")
io.stdout:flush()
local x = 1
for i = 1, 1e15 do
  zone("innermost")
  x = spin(x)
  zone()
  x = spin(x)
end
print(x)

-- SPDX-License-Identifier: BSD-2-Clause
--
-- Zones: names for what a program does, which luabpf -jp=z shows. The interface is that of LuaJIT's
-- jit.zone, which this module is there; without LuaJIT:
--
--     local zone = require("zone")
--     zone("parse")           -- enters a zone
--     print(zone:get())       -- "parse"; nil outside of all zones
--     zone()                  -- leaves it, and returns its name
--     zone:flush()            -- leaves all
--
-- The table is the stack of zones: luabpf reads it from outside.

local found, jit_zone = pcall(require, "jit.zone")
if found then
  return jit_zone
end

local zone = {}

function zone:get()
  return self[#self]
end

function zone:flush()
  for i = #self, 1, -1 do
    self[i] = nil
  end
end

return setmetatable(zone, {
  __call = function(self, name)
    local depth = #self
    if name then
      self[depth + 1] = name
      return
    end
    assert(depth > 0, "empty zone stack")
    name = self[depth]
    self[depth] = nil
    return name
  end,
})

-- SPDX-License-Identifier: BSD-2-Clause
--
-- The zones of what luabpf.profile samples, with the interface of LuaJIT's jit.zone: get() within the
-- callback is the innermost zone of the sample, nil if it was in none. Once it is loaded, zones are
-- recorded. For jit/p.lua:
--
--     package.loaded["jit.profile"] = require("luabpf.profile")
--     package.loaded["jit.zone"] = require("luabpf.zone")

local profile = require("luabpf.profile")
local zone = {}

function zone.get()
  return profile.label("zone")
end

return zone

-- SPDX-License-Identifier: BSD-2-Clause
-- A service for haproxy that works for a while per request and says how much each part took since the start.
-- haproxy yields from it by force, from a hook that counts instructions, and resumes it later.
local parts = require("parts")
local clock, measure, turns = os.clock, parts.measure, parts.turns

local function headers(applet, n)
  local s = 0
  for i = 1, n do s = s + #applet.headers["host"][0] end -- headers
  return s
end

-- A global, which is what it is called by.
function busy(applet)
  local start = clock()
  while clock() - start < 0.05 do
    parts.begin()
    measure("spin", parts.spin, turns(9000))
    measure("text", parts.text, turns(1000))
    measure("headers", headers, applet, turns(2000))
  end
  local answer = parts.tell({ all = clock() })
  applet:set_status(200)
  applet:add_header("content-length", #answer)
  applet:start_response()
  applet:send(answer)
end

core.register_service("busy", "http", busy)

-- SPDX-License-Identifier: BSD-2-Clause
-- A service for haproxy that works for a while per request and says how much each part took since the start.
-- haproxy yields from it by force, from a hook that counts instructions, and resumes it later.
local clock = os.clock
local took = { spin = 0, text = 0, headers = 0 }
local round = 0

local function spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end -- spin
  return s
end

local function text(n)
  local s
  for i = 1, n do s = string.format("%d:%s", i, "text") end -- text
  return s
end

local function headers(applet, n)
  local s = 0
  for i = 1, n do s = s + #applet.headers["host"][0] end -- headers
  return s
end

local function measure(name, f, ...)
  local start = clock()
  f(...)
  took[name] = took[name] + clock() - start
end

local function busy(applet)
  local start = clock()
  while clock() - start < 0.05 do
    round = round + 1
    measure("spin", spin, 9000 + round * 7919 % 9000)
    measure("text", text, 1000 + round * 7919 % 1000)
    measure("headers", headers, applet, 2000 + round * 7919 % 2000)
  end
  local answer = ('{"spin":%.6f,"text":%.6f,"headers":%.6f,"all":%.6f}'):format(took.spin, took.text, took.headers, clock())
  applet:set_status(200)
  applet:add_header("content-length", #answer)
  applet:start_response()
  applet:send(answer)
end

core.register_service("busy", "http", busy)

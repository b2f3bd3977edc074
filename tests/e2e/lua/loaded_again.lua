-- SPDX-License-Identifier: BSD-2-Clause
-- A template is loaded for each request. Traces keep the functions of earlier requests alive, without closures.
local text = [[
local n = ...
local function head(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function body(n) local s = 0 for i = 1, n do s = s + i % 5 end return s end
return head(n) + body(n * 2)
]]
collectgarbage("setpause", 200)
io.write("ready\n") io.flush()
while true do (loadstring or load)(text, "=tpl")(300) end

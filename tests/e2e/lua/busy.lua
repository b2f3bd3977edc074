-- SPDX-License-Identifier: BSD-2-Clause
-- usage: busy.lua [SECONDS [wait]]; works for so much CPU time, or until it is killed, after "ready"; with "wait" when a line
-- of input has come. Two zones, two coroutines, functions that are called by other names than they are defined by.
local zone = require(jit and "jit.zone" or "zone")
local clock = os.clock
local M = {}

function M.sum(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function text(n) local t = {} for i = 1, n do t[i] = string.rep("x", i % 9) end return table.concat(t, ",") end
local long = text(300)
local function scan() return select(2, long:gsub("x+,", "%0")) end
local function parse(n) zone("parse") local x = M.sum(40 * n) zone() return x end
local function render(n) zone("render") local x = #text(n) zone() return x end
local co = coroutine.wrap(function(n) while true do n = coroutine.yield(render(n)) end end)

local function turn()
  local add = M.sum
  for _ = 1, 20 do
    parse(100)
    add(1000)
    co(100)
    scan()
  end
  table.sort({ 5, 3, 1, 4 }, function(a, b) return a < b end)
end

print("ready")
io.stdout:flush()
if arg[2] then io.read() end
local last = arg[1] and clock() + tonumber(arg[1]) or math.huge
while clock() < last do turn() end

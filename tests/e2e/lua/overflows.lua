-- SPDX-License-Identifier: BSD-2-Clause
-- usage: overflows.lua SECONDS
-- A stack overflow, and a coroutine, in turns: the Lua stack and 5.1's array of CallInfos grow and shrink all the time.
-- Prints the share of the time that the overflows took.
local SECONDS, clock = tonumber(arg[1]), os.clock
local used = {}
local function busy(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
local function timed(key, f) local t = clock() f() used[key] = (used[key] or 0) + clock() - t end
local function turn() local co = coroutine.wrap(function() return (("abc"):gsub(".", function(c) busy(300) return c end)) end) co() end
local function overflow() pcall(function() local function runaway(n) return 1 + runaway(n + 1) end return runaway(1) end) end
print("ready") io.flush() io.read()
local start = clock()
while clock() - start < SECONDS do timed("overflow", overflow) timed("turn", turn) end
print(used.overflow / (clock() - start)) io.flush()
io.read()

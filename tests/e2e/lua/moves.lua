-- SPDX-License-Identifier: BSD-2-Clause
-- usage: moves.lua SECONDS
-- In a coroutine, recursion until the Lua stack overflows, which is caught, and recursion that does
-- not fail: most of the time the stack is being moved. Prints the CPU time of all, and that of
-- inside().
local seconds = tonumber(arg[1])
local clock = os.clock
local spent = 0

local function endless(n) return 1 + endless(n + 1) end
local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end

local function inside()
  local t = clock()
  pcall(endless, 1)
  for _ = 1, 12 do deep(5000) end
  spent = spent + clock() - t
end

print "ready"
io.stdout:flush()
io.read()
local start = clock()
repeat coroutine.wrap(inside)() until clock() - start > seconds
print(clock() - start, spent)
io.stdout:flush()
os.exit(0) -- without lua_close()

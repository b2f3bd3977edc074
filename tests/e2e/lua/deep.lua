-- SPDX-License-Identifier: BSD-2-Clause
-- Deep stacks: as many frames as are recorded, and more than that.
local wrap, yield = coroutine.wrap, coroutine.yield

local function spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

local function climb(n)
  if n == 0 then return 0 end
  local r = 1 + climb(n - 1) --> climb
  return r
end

local function hundred(n)
  for i = 1, n do
    climb(100) --> climb
  end
end

local function dive(n) --@ dives
  if n == 0 then
    local s = spin(3000) --> spin
    return s
  end
  local r = 1 + dive(n - 1) --> dive
  return r
end

local function dives(n)
  for i = 1, n do
    dive(200) --> dive
  end
end

-- coroutines in coroutines
local function level(k)
  local s = spin(20) --> spin
  if k > 0 then
    local inner = wrap(level) --> coroutine.wrap
    s = s + inner(k - 1) --> inner
  end
  yield(s) --> coroutine.yield
  return s
end
--* inner > level
--* outermost > level

local function levels(n)
  for i = 1, n do
    local outermost = wrap(level) --> coroutine.wrap
    outermost(12) --> outermost
  end
end

return { "hundred", hundred, "dives", dives, "levels", levels }

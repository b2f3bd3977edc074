-- SPDX-License-Identifier: BSD-2-Clause
-- A busy target with a few hundred distinct stacks: 4 levels of functions, each of which calls one
-- of 4 others at random.
local SPAN, LEVELS = 4, 4

local function leaf(x)
  for i = 1, 300 do x = (x * 7 + i) % 1021 end
  return x
end

local level = { leaf }
for n = 1, LEVELS do
  local next_level = {}
  for k = 1, SPAN do
    local text = ([[
local callees, random = ...
local function l%d_%d(x)
  local y = callees[random(#callees)](x)
  return y + 1
end
return l%d_%d]]):format(n, k, n, k)
    next_level[k] = assert(loadstring(text, ("=l%d_%d"):format(n, k)))(level, math.random)
  end
  level = next_level
end

print("ready")
io.stdout:flush()
local x = 1
while true do
  for k = 1, SPAN do x = level[k](x) end
end

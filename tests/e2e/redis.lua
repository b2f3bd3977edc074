-- SPDX-License-Identifier: BSD-2-Clause
-- The body of an EVAL (test_redis.py): does ARGV[1], ARGV[2] times. There is no clock here.
local parts = {}

function parts.spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end -- spin
  return s
end

function parts.text(n)
  local s
  for i = 1, n do s = string.format("%d:%s", i, "text") end -- text
  return s
end

function parts.store(n)
  for i = 1, n do redis.call("SET", KEYS[1], i) end -- store
end

local function less(a, b)
  return a < b -- less
end

function parts.sort(n)
  local t = {}
  for i = 1, n do t[i] = i * 7919 % 1031 end
  table.sort(t, less) -- sort
end

local part = parts[ARGV[1]]
part(tonumber(ARGV[2])) -- part
return "done"

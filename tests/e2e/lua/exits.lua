-- SPDX-License-Identifier: BSD-2-Clause
-- Types and branches that change: compiled code leaves its traces all the time.
local seed = 42
local function random()
  seed = (seed * 16807) % 2147483647
  return seed
end

local function branchy(n)
  local s = 0
  for i = 1, n do
    local r = random() % 8 --> random
    if r == 0 then
      s = s + 1
    elseif r == 1 then
      s = s - 1
    elseif r < 4 then
      s = s * 0.5
    elseif r < 6 then
      s = s + i % 3
    else
      s = -s
    end
  end
  return s
end

local mixed = { 1, "2", 3.5, true, "x", false, 7, {} }
local function types(n)
  local s = 0
  for i = 1, n do
    local v = mixed[random() % 8 + 1] --> random
    if type(v) == "number" then --> type
      s = s + v
    elseif type(v) == "string" then --> type
      s = s + #v
    else
      s = s + (v and 1 or 2)
    end
  end
  return s
end

local fs = {
  function(x) return x + 1 end, --: one
  function(x) return x * 0.5 end, --: two
  function(x) return x - 3 end, --: three
}
local function polymorphic(n)
  local s = 0
  for i = 1, n do
    s = fs[random() % 3 + 1](s) --> random, one, two, three
  end
  return s
end

local function climb(n)
  if n <= 0 then return 0 end
  return 1 + climb(n - 1 - random() % 2) --> climb, random
end

local function recursion(n)
  for i = 1, n do
    climb(20) --> climb
  end
end

return { "branchy", branchy, "types", types, "polymorphic", polymorphic, "recursion", recursion }

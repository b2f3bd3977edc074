-- SPDX-License-Identifier: BSD-2-Clause
-- usage: zones.lua early|late SECONDS
-- Changes zones 10,000 times a second for SECONDS of CPU time, after "go" on stdin; then prints, as JSON, the CPU time
-- that each zone was the innermost. Function in_NAME runs in zone NAME only. late: the module is loaded after a quarter.
local mode, seconds = arg[1], tonumber(arg[2])
local module = jit and "jit.zone" or "zone"
local clock, zone = os.clock, nil
local spent, last = {}, nil

local function note()
  local now, name = clock(), zone and zone:get() or "(none)"
  spent[name] = (spent[name] or 0) + now - last
  last = now
end
local function enter(name) note() zone(name) end
local function leave() note() return zone() end

local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function in_none(n) local x = spin(n) return x end
local function in_alpha(n) local x = spin(n) return x end
local function in_beta(n) local x = spin(n) return x end
local function in_gamma(n) local x = spin(n) return x end
local function in_leak(n) local x = spin(n) return x end
local function in_deep(n) local x = spin(n) return x end

-- Enters a zone that the coroutine does not leave.
local leak = coroutine.wrap(function(n)
  while true do
    enter("leak")
    in_leak(n)
    n = coroutine.yield()
  end
end)

local function turn(n)
  enter("alpha")
  in_alpha(2 * n)
  enter("beta")
  in_beta(4 * n)
  assert(leave() == "beta")
  leave()
  enter("gamma")
  in_gamma(3 * n)
  leave()
  leak(n)
  in_leak(n)
  leave()
end

local function deep(n)
  for i = 1, 40 do enter("deep" .. i % 2) end
  enter("deep")
  in_deep(20 * n)
  note()
  zone:flush()
end

-- How long a spin is that takes 70 us: a turn has 8 changes in 11 of them.
local function measure()
  local begin, n, k = clock(), 1000, 0
  repeat spin(n) k = k + n until clock() - begin > 0.02
  return math.floor(k * 70e-6 / (clock() - begin))
end

if mode == "early" then zone = require(module) end
local n = measure()
print("ready") io.stdout:flush() io.read()
last = clock()
local begin = last
while mode == "late" and clock() - begin < seconds / 4 do in_none(n) end
if mode == "late" then note() end
zone = require(module)
local turns = 0
while clock() - begin < seconds do
  turn(n)
  turns = turns + 1
  if turns % 20 == 0 then deep(n) end
end
note()

local out = {}
for k, v in pairs(spent) do out[#out + 1] = ("%q:%.6f"):format(k, v) end
print("{" .. table.concat(out, ",") .. "}")

-- SPDX-License-Identifier: BSD-2-Clause
-- A table in package.loaded["odd"] that is no zone stack, in several ways. Prints, as JSON, which zones a function may be
-- in: what the VM's own # says, "(none)", "(not a string)"; "(unknown)" is always right.
local t, clock = {}, os.clock
package.loaded.odd = t

local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function in_string() local x = spin(20000) return x end
local function in_hole() local x = spin(20000) return x end
local function in_number() local x = spin(20000) return x end
local function in_meta() local x = spin(20000) return x end
local function in_million() local x = spin(20000) return x end
local function in_nothing() local x = spin(20000) return x end

local function during(seconds, f)
  local begin = clock()
  while clock() - begin < seconds do f() end
end

t[1] = "one"
during(0.1, in_string)
t[2], t[3], t[4] = "two", "three", "four"
t[2] = nil
local hole = t[#t]
during(0.1, in_hole)
t[4], t[3], t[1] = nil, nil, 7
during(0.1, in_number)
t[1] = nil
setmetatable(t, { __index = function() return "wrong" end, __len = function() return 7 end })
during(0.1, in_meta)
setmetatable(t, nil)
for i = 1, 1e6 do t[i] = "x" end
during(0.1, in_million)
package.loaded.odd = 42
during(0.1, in_nothing)
print(('{"in_string":"one","in_hole":"%s","in_number":"(not a string)","in_meta":"(none)","in_million":"x","in_nothing":"(none)"}')
  :format(hole))

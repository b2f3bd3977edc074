-- SPDX-License-Identifier: BSD-2-Clause
-- Functions that are inlined; each waits in its last line. One is called from two places.
local sqrt = math.sqrt
local function cheap(a)
  return a + 1.5
end
local function root(x)
  x = x + 3
  return sqrt(sqrt(x)) --@ return x * 0.5
end
local function ratio(x)
  return 1.5 / (1.5 / x) --@ return x
end
return function(n)
  local x, a = 1.5, 0
  for i = 1, n do
    a = cheap(a)
    x = root(x) --^
    a = cheap(a)
    x = ratio(x) --^
    a = cheap(a)
    x = ratio(ratio(x)) --^
  end
  return x + a
end

-- SPDX-License-Identifier: BSD-2-Clause
-- Reads of a table that no cache holds, in random order, and arithmetic behind them.
local S = ...
if not S.next then
  local t, size, seed = {}, 2 ^ 20, 1
  for i = 1, size do t[i] = i end
  for i = size, 2, -1 do -- one cycle (Sattolo)
    seed = (seed * 16807) % 2147483647
    local j = seed % (i - 1) + 1
    t[i], t[j] = t[j], t[i]
  end
  S.next = t
end
local t = S.next
local function hop(p)
  return t[p] --@ return p
end
return function(n)
  local p, s = 1, 1.5
  for i = 1, n do
    s = s + 0.25
    p = hop(p) --^
    s = s * 0.5
    p = p + 0.5 - 0.5 + 0.25 - 0.25 + 0.5 - 0.5 --@
  end
  return p + s
end

-- SPDX-License-Identifier: BSD-2-Clause
-- A chain through string keys and records.
local keys, records = {}, {}
for i = 1, 64 do
  local k = "k" .. i
  keys[k] = "k" .. i * 5 % 64 + 1
  records[k] = {a = {b = {name = k}}}
end
return function(n)
  local k, x = "k1", 1.5
  for i = 1, n do
    k = keys[keys[k]] --@
    x = x + 1.5
    k = records[k].a.b.name --@
  end
  return k, x
end

-- SPDX-License-Identifier: BSD-2-Clause
-- Tables that grow, and one that is taken from.
local insert, remove = table.insert, table.remove
return function(n)
  local s = 0
  for i = 1, n, 60 do
    local a, b, c, d = {}, {}, {}, {}
    for j = 1, 20 do
      a[#a + 1] = j --@
    end
    for j = 1, 20 do
      insert(b, j) --@
    end
    for j = 1, 20 do
      insert(c, 1, j) --@
    end
    for j = 1, 20 do
      d[j] = j
    end
    for j = 1, 20 do
      s = s + remove(d) --@
    end
    s = s + #a + #b + #c
  end
  return s
end

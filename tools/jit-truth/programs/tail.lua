-- SPDX-License-Identifier: BSD-2-Clause
-- Functions that take each other's place.
local ping, pong
function ping(x, d)
  x = 1.5 / (1.5 / x) --@
  if d == 0 then return x end
  return pong(x, d - 1)
end
function pong(x, d)
  x = 2.5 / (2.5 / (3.5 / (3.5 / x))) --@
  if d == 0 then return x end
  return ping(x, d - 1)
end
return function(n)
  local x = 1.5
  for i = 1, n, 16 do
    x = ping(x, 15)
  end
  return x
end

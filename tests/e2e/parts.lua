-- SPDX-License-Identifier: BSD-2-Clause
-- What the scripts of the hosts have in common (haproxy.lua, nginx.lua, neovim.lua): parts that take a while, and how much
-- CPU time each part has taken in this process so far. Numbers of turns are drawn, so that no part falls in step with samples.
local parts = {}
local clock, format = os.clock, string.format
local took, round = {}, 0

function parts.spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end -- spin
  return s
end

function parts.text(n)
  local s
  for i = 1, n do s = format("%d:%s", i, "text") end -- text
  return s
end

function parts.thread(n)
  local s = 0
  for i = 1, n do s = s + i % 5 end -- thread
  return s
end

-- n to 2n turns, another number in each round.
function parts.turns(n)
  return n + round * 7919 % n
end

function parts.begin()
  round = round + 1
end

function parts.measure(name, f, ...)
  local start = clock()
  f(...)
  took[name] = (took[name] or 0) + clock() - start
end

-- As JSON, with other numbers.
function parts.tell(more)
  local out = {}
  for name, seconds in pairs(took) do out[#out + 1] = format('"%s":%.6f', name, seconds) end
  for name, number in pairs(more or {}) do out[#out + 1] = format('"%s":%.6f', name, number) end
  return "{" .. table.concat(out, ",") .. "}"
end

return parts

-- SPDX-License-Identifier: BSD-2-Clause
-- New code all the time: the parser, and many new traces.
local load, format = loadstring or load, string.format

local pattern = [[
local n = ...
local s = %d
for i = 1, n do
  s = s + i %% %d
  if s > 1e9 then s = s - 1e9 end
end
return s]]

local id = 0
local function loads(n)
  local s = 0
  for i = 1, n do
    id = id + 1
    local f = load(format(pattern, id, id % 91 + 2), "=chunk") --> loadstring, load, string.format
    s = s + f(400) --> chunk
  end
  return s
end

-- a loop that has many side exits
local branchy = [[
local n = ...
local s = 0
for i = 1, n do
  local k = (i * 7919) % 13
  if k == 0 then s = s + 1 elseif k == 1 then s = s + 2 elseif k == 2 then s = s + 3
  elseif k < 6 then s = s - 1 elseif k < 9 then s = s - 2 else s = s * 0.5 end
end
return s]]
local function branches(n)
  local f = load(branchy, "=chunk") --> loadstring, load
  for i = 1, n do
    f(300) --> chunk
  end
end

local function parses(n)
  local source = "return {" .. ("1, 'x', {}, function(a) return a + 1 end, "):rep(20) .. "}" --> string.rep
  for i = 1, n do
    load(source, "=chunk") --> loadstring, load
  end
end

return { "loads", loads, "branches", branches, "parses", parses }

-- SPDX-License-Identifier: BSD-2-Clause
-- usage: reuse.lua SECONDS [TURNS], under LuaJIT or PUC Lua
-- Functions that come and go at the same addresses: same code, same size, same chunk name, names of the
-- same length, most of them at the same lines as the one before. The outer one, the inner one and
-- the global that it calls carry the same number. Whoever mixes up two of them shows two numbers in
-- one stack, or the numbers of a few only. After TURNS (1) of the collector the next function comes: of two, the
-- colour that it marks with is the same again.
local seconds, turns = tonumber(arg[1]), tonumber(arg[2] or 1)
local template = [[
local spin = ...
NEWLINES local function innerNNNN(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
function globalNNNN(n)
  local s = innerNNNN(n)
  return s + 1
end
local function outerNNNN(n)
  local s = globalNNNN(n)
  return s + 1
end
return outerNNNN]]
print("ready")
io.stdout:flush()
io.read()
local start, id = os.clock(), 0
local function once(outer, least)
  local t = os.clock()
  repeat
    local s = outer(3000)
  until os.clock() - t > least
end
while os.clock() - start < seconds do
  id = id + 1
  local number = ("%04d"):format(id % 10000)
  local code = template:gsub("NNNN", number):gsub("NEWLINES", ("\n"):rep(math.floor(id / 7) % 2))
  local outer = assert((loadstring or load)(code, "=reused"))()
  once(outer, 0.002)
  outer, code = nil, nil
  _G["global" .. number] = nil
  for _ = 1, turns do collectgarbage() end
end
print(id)

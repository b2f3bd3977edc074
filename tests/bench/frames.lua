-- SPDX-License-Identifier: BSD-2-Clause
-- A target that stays at a given depth.  usage: luajit|lua5.x frames.lua N rec|chain|trace|C|co
--
--   rec    N Lua frames: the main chunk, and one function that calls itself
--   chain  N Lua frames: the main chunk, and N-1 distinct functions
--   trace  as chain, but it is called all the time, for one step: with the JIT compiler on the
--          calls are inlined, and the frames are only in the trace's snapshots
--   C      N Lua frames as in chain, and a C function on top that takes its time
--   co     N Lua frames: the main chunk, and the others in a coroutine
local depth, kind = tonumber(arg[1]), arg[2]
local loadstring = loadstring or load

local ring = {}
for i = 1, 64 do ring[i] = i * 37 % 64 + 1 end

local function spin(x)
  for i = 1, 1e15 do x = x + i % 7 end
  return x
end

local list = {}
for i = 1, 2000 do list[i] = "some text" end

local function in_c(x)
  for i = 1, 1e15 do table.concat(list, ",") end
  return x
end

-- Every store makes the next guard take a snapshot, at the depth of this function.
local function step(x)
  local t = ring
  do
    local a = t[x]; t[x] = a
    local b = t[a]; t[a] = b
    local c = t[b]; t[b] = c
    local d = t[c]; t[c] = d
    local e = t[d]; t[d] = e
    local f = t[e]; t[e] = f
    local g = t[f]; t[f] = g
    local h = t[g]; t[g] = h
    x = h
  end
  return x
end

local function chain(n, leaf)
  local f = leaf
  for i = n - 1, 1, -1 do
    local text = ("local callee = ...\nlocal function f%d(x)\n  local y = callee(x)\n" ..
                  "  return y\nend\nreturn f%d"):format(i, i)
    f = assert(loadstring(text, "=chain"))(f)
  end
  return f
end

local function rec(n)
  if n > 1 then
    local y = rec(n - 1)
    return y
  end
  local x = 0
  for i = 1, 1e15 do x = x + i % 7 end
  return x
end

io.stdout:write("ready\n")
io.stdout:flush()
local x = 1
if kind == "rec" then
  x = rec(depth - 1)
elseif kind == "chain" then
  x = chain(depth - 1, spin)(x)
elseif kind == "C" then
  x = chain(depth - 1, in_c)(x)
elseif kind == "co" then
  x = coroutine.wrap(chain(depth - 1, spin))(x)
else
  local f = chain(depth - 1, step)
  for _ = 1, 1e15 do x = f(x) end
end
print(x)

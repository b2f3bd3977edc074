-- SPDX-License-Identifier: BSD-2-Clause
-- For LuaJIT: sections that run in one state of the VM each, by what the program knows of itself. known.compiled is 1
-- while the loop of "compiled" has a trace, known.recording how long traces were recorded and assembled, in seconds.
local clock, find, load = os.clock, string.find, loadstring
local begun

local function loop(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end

local function event(what, _, func) --* > event
  if what == "start" then
    begun = clock() --> os.clock
  elseif begun then
    known.recording = known.recording + clock() - begun --> os.clock
    begun = nil
  end
  if what == "stop" and func == loop then
    known.compiled = 1
  elseif what == "flush" then
    known.compiled = 0
  end
end

local function compiled(n)
  if jit.status() then --> jit.status
    for i = 1, 1000 do
      if known.compiled == 1 then break end
      loop(100) --> loop
    end
  end
  local s = loop(20 * n) --> loop
  return s
end

local function interpreted(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end
  return s
end
jit.off(interpreted)

local text = ("text "):rep(4000)
local function native(n)
  for i = 1, n do
    find(text, "(y).*z") --> string.find
  end
end
jit.off(native)

local kept = {}
for i = 1, 5000 do kept[i] = { i } end
local function collected(n)
  for i = 1, n do collectgarbage() end --> collectgarbage
end

local id = 0
local function recorded(n)
  for i = 1, n do
    id = id + 1
    local f = load("local n, s = ..., " .. id .. " for i = 1, n do s = s + i % 7 end return s", "=chunk") --> loadstring
    f(100) --> chunk
  end
end

known.compiled, known.recording = 0, 0
jit.attach(event, "trace")

return { "compiled", compiled, "interpreted", interpreted, "native", native, "collected", collected, "recorded", recorded }

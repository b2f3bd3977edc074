-- SPDX-License-Identifier: BSD-2-Clause
-- For LuaJIT: sections that run in one state of the VM each, by what the program knows of itself. known.compiled is 1
-- if the loop of "compiled" had a trace each time, known.recording how long traces were recorded and assembled, in seconds.
local clock, find, load = os.clock, string.find, loadstring
local begun, has_trace

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
    has_trace = true
  elseif what == "flush" then -- there are too many traces: all go
    has_trace = false
  end
end

local function compiled(n)
  if jit.status() then --> jit.status
    for i = 1, 1000 do
      if has_trace then break end
      loop(100) --> loop
    end
    if not has_trace then known.compiled = 0 end
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

known.compiled, known.recording = jit.status() and 1 or 0, 0 --> jit.status
jit.attach(event, "trace")

return { "compiled", compiled, "interpreted", interpreted, "native", native, "collected", collected, "recorded", recorded }

-- SPDX-License-Identifier: BSD-2-Clause
local newproxy, setmetatable, getmetatable = newproxy, setmetatable, getmetatable
local collectgarbage = collectgarbage

local finals = 0
local function finalizer(u) --* > finalizer
  local s = 0
  for i = 1, 20 do s = s + i % 3 end
  finals = finals + s
end

local mt = { __gc = finalizer }
local function finalizers(n)
  for i = 1, n do
    if newproxy then
      local u = newproxy(true) --> newproxy
      getmetatable(u).__gc = finalizer --> getmetatable
    else
      setmetatable({}, mt) --> setmetatable
    end
  end
end

local function garbage(n)
  local t
  for i = 1, n do
    t = { i, { i } }
    t = function() return t end
  end
  return t
end

local function strings(n)
  local s
  for i = 1, n do
    s = "garbage " .. i .. " of " .. n
  end
  return s
end

local weak = setmetatable({}, { __mode = "k" })
local function weaks(n)
  for i = 1, n do
    weak[{}] = i
  end
end

local kept = {}
local function collects(n)
  for i = 1, 200 do kept[i] = { i } end
  for i = 1, n do
    collectgarbage("step") --> collectgarbage
  end
end

local function full(n)
  mark() --> mark
  for i = 1, n do collectgarbage() end --= full --> collectgarbage
  lap("full") --> lap
end

local function stopped(n)
  local t
  collectgarbage("stop") --> collectgarbage
  for i = 1, n do
    t = { i, { i } }
  end
  collectgarbage("restart") --> collectgarbage
  return t
end

return { "finalizers", finalizers, "garbage", garbage, "strings", strings, "weaks", weaks, "collects", collects,
  "full", full, "stopped", stopped }

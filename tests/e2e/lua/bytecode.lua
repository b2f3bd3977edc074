-- SPDX-License-Identifier: BSD-2-Clause
-- Functions with instructions of all kinds, hot enough for traces. Says what jit/bc.lua lists of each, and of each trace
-- the instructions that the compiler recorded; "ready"; and waits. "inside FUNCTION" begins a listing, a line of it is
-- "| ...", "trace NUMBER" begins a trace, of which each instruction is "FUNCTION:POSITION".
local util, bc = require("jit.util"), require("jit.bc")

local up, counter, text = 1.25, 0, "x"

local function numbers(n)
  local s = 0
  for i = 1, n do
    s = (s + i * 2.5 - 3) % 1000 + 10 / i - (7 - i) * 1e100 - i ^ 2 - -i
    if i == 5 or 5 ~= s or i < s or i >= 70000 or not (i > 3) then s = -s end
  end
  return s
end

local function strings(n)
  local t = {a = 1, ["with \n\t\r\1 and \127"] = 2, 10, 20, nil, 40}
  for i = 1, n do
    t.a = t.a + 1
    t[1], t[2] = t[2], "a string that has more than forty characters, of which the last are left out"
    t["with \n\t\r\1 and \127"] = #t
    text = "y"
    if t.a == "never" or t[i] == nil then t[i] = false end
    t.b = "ab" .. i .. "c"
  end
  return t
end

local function upvalues(n)
  for _ = 1, n do
    counter = counter + up
    up = 2
    up = nil
    up = 1.5
    up = "some"
    up = counter and 1.25
  end
end

local function calls(n, ...)
  local a, b = ..., select("#", ...)
  for i = 1, n do
    a = math.max(i, b, math.min(i, ...))
    local s = ("x"):rep(2)
    b = #s
  end
  return a, numbers(2)
end

local function method(self, k)
  return self[k] and self.v
end

local object = {v = 3, method = method, k = true}
object.self = object

local function methods(n)
  local s = 0
  while n > 0 do
    n = n - 1
    s = s + object:method("k")
    repeat s = s + 1 until s % 3 ~= 1
  end
  return s
end

local function iterators(n)
  local t, s = {1, 2, 3, x = 4}, 0
  for _ = 1, n do
    for _, v in pairs(t) do s = s + v end
    for _, v in ipairs(t) do s = s + v end
  end
  return s
end

local function closures(n)
  local f
  for i = 1, n do
    f = function(a, b) return a + b + i end
    f(1, 2)
  end
  do
    local captured = n
    f = function() captured = captured + 1 return captured end
  end
  return f, {calls(1)}, {[1] = n, calls(1)}
end

local function recursion(n)
  if n <= 1 then return n end
  return recursion(n - 1) + n
end

local function tail(n)
  if n == 0 then return true end
  return tail(n - 1)
end

local all = {numbers, strings, upvalues, calls, method, methods, iterators, closures, recursion, tail}

local function work()
  numbers(200)
  strings(200)
  upvalues(200)
  calls(200, 4, 5)
  methods(200)
  iterators(60)
  closures(200)
  recursion(60)
  tail(200)
end

local recorded, traces = nil, {}

local function place(func, pc)
  return ("%d:%d"):format(util.funcinfo(func).linedefined, pc)
end

local function trace_event(what, tr)
  if what == "start" then
    recorded = {}
  elseif what == "stop" then
    traces[tr] = recorded
  elseif what == "flush" then
    traces = {}
  end
end

local function record_event(_, func, pc)
  if util.funcinfo(func).linedefined then recorded[#recorded + 1] = place(func, pc) end
end
jit.off(trace_event)
jit.off(record_event)
jit.off(place)

jit.attach(trace_event, "trace")
jit.attach(record_event, "record")
for _ = 1, 60 do work() end
jit.attach(trace_event)
jit.attach(record_event)
jit.off()

local out = {write = function(_, s) io.write((s:gsub("[^\n]+", "| %0"))) end, flush = function() end}
local function list(func)
  print("inside " .. util.funcinfo(func).linedefined)
  bc.dump(func, out)
  for n = -1, -100000, -1 do
    local child = util.funck(func, n)
    if not child then break end
    if type(child) == "proto" then list(child) end
  end
end
for _, func in ipairs(all) do list(func) end
for tr, places in pairs(traces) do
  print("trace " .. tr .. " " .. table.concat(places, " "))
end
print("ready")
io.stdout:flush()
io.read()

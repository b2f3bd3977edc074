-- SPDX-License-Identifier: BSD-2-Clause
-- usage: lua5.x names.lua SECONDS
-- Calls functions in every way that gives a name, over and over. First each call is made once under a
-- hook, which prints the name that the interpreter itself has for it: "call LINE FIRSTLINE NAME", with FIRSTLINE -1
-- for a C function and "none" for no name.
local seconds = tonumber(arg[1])
local getinfo, sethook = debug.getinfo, debug.sethook
local rep, sort, concat, gsub = string.rep, table.sort, table.concat, string.gsub
local load = loadstring or load
local modern = _VERSION ~= "Lua 5.1"

local size = 1
local function spin()
  local s = 0
  for i = 1, 400 * size do s = s + i % 7 end
  return s
end

function global_work(x) local s = spin() return s end
local function upvalue_work(x) local s = spin() return s end
local object = { inner = {} }
function object.field_work(x) local s = spin() return s end
function object:method_work(x) local s = spin() return s end
object.inner.deep_work = object.field_work
object[1] = upvalue_work
local key = "field_work"

local meta = {}
local value, other = setmetatable({}, meta), setmetatable({}, meta)
meta.__index = function(t, k) local s = spin() return s end
meta.__newindex = function(t, k, v) local s = spin() return s end
meta.__call = function(...) local s = spin() return s end
meta.__add = function(a, b) local s = spin() return s end
meta.__unm = function(a) local s = spin() return s end
meta.__concat = function(a, b) local s = spin() return s end
meta.__eq = function(a, b) local s = spin() return true end
meta.__lt = function(a, b) local s = spin() return true end
meta.__le = function(a, b) local s = spin() return true end
meta.__mod = function(a, b) local s = spin() return s end
meta.__len = function(a) local s = spin() return 1 end

local function iterator(state, i)
  local s = spin()
  if i < 2 then return i + 1 end
end

local function tailed(x) local s = spin() return s end
local function tails(x) return tailed(x) end

local text, list = rep("some text ", 40), {}
for i = 1, 300 do list[i] = tostring(i) end

local function lua_calls(param)
  local local_work = upvalue_work
  local_work()
  param()
  global_work()
  upvalue_work()
  object.field_work()
  object:method_work()
  object.inner.deep_work()
  object[1]()
  object[key]()
  ;(function() local s = spin() return s end)()
  local copy = local_work
  copy(1, 2, 3)
  if param then copy = param end
  copy()
  local s = local_work() + upvalue_work()
  s = { local_work(), upvalue_work() }
  tails()
  for i in iterator, nil, 0 do s = i end
  local values = { local_work(upvalue_work(param())) }
  return s
end

local function metamethods()
  local s
  s = value.absent
  value.absent = 1
  s = value()
  s = value + other
  s = -value
  s = value .. other
  s = value == other
  s = value < other
  s = value <= other
  s = value % other
  if modern then
    s = #value
  end
  return s
end

local function c_calls()
  local n = 2 * size
  for i = 1, n do rep("x", 20000) end
  for i = 1, n do string.rep("x", 20000) end
  for i = 1, n do concat(list, ",") end
  for i = 1, n do table.concat(list, ",") end
  for i = 1, 2 * n do gsub(text, "x", "y") end
  for i = 1, 2 * n do text:gsub("x", "y") end
  for i = 1, 20 * n do text:upper() end
  local find = string.find
  for i = 1, n do find(text, "(x).*y") end
  for i = 1, n do load("local a, b, c, d, e, f = 1, 2, 3, 4, 5, 6 return function() return a + b + c + d + e + f end") end
  for word in text:gmatch("%a+") do word = nil end
  for i = 1, 4 * n do sort({ 5, 3, 8, 1, 9, 2, 7, 4, 6, 5, 3, 8, 1, 9, 2, 7, 4, 6 }) end
end

local out, seen = {}, {}
local function emit(row)
  if not seen[row] then out[#out + 1], seen[row] = row, true end
end
local function hook()
  local me, from = getinfo(2, modern and "nSt" or "nS"), getinfo(3, "Sl")
  if not me.istailcall and from and from.what ~= "C" and from.what ~= "tail" and from.short_src:match("names.lua") then
    emit("call " .. from.currentline .. " " .. (me.what == "C" and -1 or me.linedefined) .. " " .. (me.name or "none"))
  end
end
size = 0
sethook(hook, "c")
lua_calls(upvalue_work)
metamethods()
size = 0.5
c_calls()
sethook()
size = 1
print(concat(out, "\n"))
print("ready")
io.stdout:flush()
io.read()
local start = os.clock()
while os.clock() - start < seconds do
  for i = 1, 8 do
    lua_calls(upvalue_work)
    metamethods()
    tails()
  end
  c_calls()
end

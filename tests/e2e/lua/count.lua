-- SPDX-License-Identifier: BSD-2-Clause
-- Counts its own calls. Prints "LINE NAME CALLS" for each of its functions, LINE 0 for chunks and C functions,
-- and ends by os.exit(7) inside a coroutine.
local load = loadstring or load
local n, line = {}, {}
local function define(name, f)
  n[name], line[name] = 0, debug.getinfo(f, "S").linedefined
  return f
end

local fib fib = define("fib", function(k)
  n.fib = n.fib + 1
  return k < 2 and k or fib(k - 1) + fib(k - 2)
end)
fib(16)

local one, two = function() n.one = n.one + 1 end, function() n.two = n.two + 1 end
define("one", one) define("two", two)
for _ = 1, 700 do one() two() two() end

local tail tail = define("tail", function(k)
  n.tail = n.tail + 1
  if k == 0 then return end
  return tail(k - 1)
end)
tail(500)

-- Closures whose memory is used again by those of another function.
for i = 1, 4000 do
  local odd, even = function() n.odd = n.odd + 1 return i end, function() n.even = n.even + 1 return i, i end
  if i == 1 then define("odd", odd) define("even", even) end
  if i % 2 == 1 then odd() else even() end
  if i % 100 == 0 then collectgarbage() end
end

-- Prototypes whose memory is used again, and chunks that are loaded many times.
for k = 0, 4 do n["=part" .. k], line["=part" .. k] = 0, 0 end
for i = 1, 3000 do
  local part = "=part" .. i % 5
  load("local n = ... n['" .. part .. "'] = n['" .. part .. "'] + 1", part)(n)
  if i % 50 == 0 then collectgarbage() end
end

local body = define("body", function(k)
  n.body = n.body + 1
  for _ = 1, k do coroutine.yield() end
end)
for k = 1, 60 do
  local co = coroutine.create(body)
  while coroutine.status(co) ~= "dead" do coroutine.resume(co, k) end
end

local thrower thrower = define("thrower", function(k)
  n.thrower = n.thrower + 1
  if k > 0 then return pcall(thrower, k - 1) end
  error("end")
end)
for _ = 1, 40 do pcall(thrower, 5) end
local guarded = define("guarded", function() n.guarded = n.guarded + 1 error({}) end)
for _ = 1, 300 do pcall(guarded) end

local index = define("index", function(_, k) n.index = n.index + 1 return k end)
local add = define("add", function(a) n.add = n.add + 1 return a end)
local call = define("call", function(_, ...) n.call = n.call + 1 return select("#", ...) end)
local object = setmetatable({}, {__index = index, __add = add, __call = call})
for i = 1, 400 do
  local _ = object[i] + object[-i], object + i, object(i, i), object[-i]
  object = object + object
end

local less = define("less", function(a, b) n.less = n.less + 1 return a < b end)
local numbers = {}
for i = 1, 200 do numbers[i] = i * 7919 % 211 end
table.sort(numbers, less)

n["string.rep"], n["math.floor"] = 0, 0
for i = 1, 900 do
  if i % 3 == 0 then string.rep("x", 2) n["string.rep"] = n["string.rep"] + 1 end
  math.floor(i / 2) n["math.floor"] = n["math.floor"] + 1
end

coroutine.wrap(function()
  for name, calls in pairs(n) do print(line[name] or 0, name, calls) end
  io.stdout:flush()
  os.exit(7)
end)()

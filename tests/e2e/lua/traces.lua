-- SPDX-License-Identifier: BSD-2-Clause
-- Makes traces of each kind, and starts that are not compiled; says what jit.util and the compiler's own events know of
-- them, one line each; "ready"; and waits. With an argument: runs the work for so many seconds instead, and says nothing.
local util, vmdef = require("jit.util"), require("jit.vmdef")

local function leaf(x)
  return (x * 1103515245 + 12345) % 2147483648
end

local function sides(n)
  local s = 0
  for i = 1, n do
    if i % 3 == 0 then
      s = s + leaf(i)
    elseif i % 7 == 0 then
      s = s - 1
    else
      s = s + 2
    end
  end
  return s
end

local function closures(n)
  local s = 0
  for i = 1, n do
    local f = function() return i end
    s = s + f()
  end
  return s
end

local function stitched(n)
  local s = 0
  for i = 1, n do
    s = s + #(("a b"):gsub("%w", "x"))
  end
  return s
end

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local function whiles(n)
  local i, s = 0, 0
  while i < n do
    i = i + 1
    local k = 0
    repeat
      k = k + 1
      s = s + k
    until k > 12
  end
  return s
end

local function iterators(n)
  local t, s = {}, 0
  for i = 1, 50 do t[i] = i end
  for _ = 1, n do
    for k, v in pairs(t) do s = s + k * v end
    for _, v in ipairs(t) do s = s - v end
  end
  return s
end

local function off(n)
  local s = 0
  for i = 1, n do s = s + i end
  return s
end
jit.off(off)

local function calls_off(n)
  local s = 0
  for _ = 1, n do s = s + off(3) end
  return s
end

local function work()
  sides(20000)
  closures(20000)
  stitched(2000)
  fib(18)
  whiles(2000)
  iterators(300)
  calls_off(10000)
end

if arg[1] then
  local e = os.clock() + tonumber(arg[1])
  while os.clock() < e do work() end
  os.exit(0)
end

-- As jit/v.lua: where a trace starts is known at its start only.
local start, started, aborted = nil, {}, {}

local function place(func, pc)
  local i = util.funcinfo(func, pc)
  return ("%s %d %d %d"):format(i.loc, i.currentline, i.linedefined, pc)
end

local function event(what, tr, func, pc, a, b)
  if what == "start" then
    start = {func = func, pc = pc, text = place(func, pc), parent = a or 0, exit = b or 0}
  elseif what == "stop" then
    started[tr] = start
    aborted[start.text] = nil
  elseif what == "abort" and start.parent == 0 then
    local info = type(b) == "function" and vmdef.ffnames[util.funcinfo(b).ffid] or b
    local before, op = aborted[start.text], util.funcbc(start.func, start.pc) % 256
    -- the abort that blacklists a start leaves the reason of the one before it
    local reason = before and vmdef.bcnames:find("^I[FIL]", op * 6 + 1) and before
                   or {err = a, text = vmdef.traceerr[a]:format(info)}
    aborted[start.text] = {start = start, at = util.funcinfo(func).source and place(func, pc) or "?", err = reason.err,
                           text = reason.text}
  elseif what == "flush" then
    started, aborted = {}, {}
  end
end
jit.off(event, true)
jit.off(place)

jit.attach(event, "trace")
for _ = 1, 40 do work() end
jit.attach(event)
jit.off()

for tr = 1, 1000 do
  local i, s = util.traceinfo(tr), started[tr]
  if i then
    local mc, addr = util.tracemc(tr)
    local _, _, parent, exit = util.traceir(tr, 0)
    print(("trace %d %s %d %d %d %d %d %x %d %d %s"):format(tr, i.linktype, i.link, i.nins, i.nk, i.nexit, #mc, addr,
                                                           parent, exit, s and s.text or "?"))
  end
end
local names = vmdef.bcnames
for _, a in pairs(aborted) do
  local op = util.funcbc(a.start.func, a.start.pc) % 256
  print(("abort %s|%d|%s|%s|%s"):format(a.start.text, a.err, a.text, names:sub(op * 6 + 1, op * 6 + 6), a.at))
end
for i = 0, #vmdef.traceerr do print("reason " .. vmdef.traceerr[i]) end
print("ready")
io.stdout:flush()
io.read()

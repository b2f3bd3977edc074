-- SPDX-License-Identifier: BSD-2-Clause
-- Calls a recording function in every way that Lua can call one, one call per line, and tells for each
-- what LuaJIT itself calls it. Then waits on stdin, so that test_luasym.py can read this process.
--   call FUNC LINE WHAT NAME     closure, line of the call, debug.getinfo(1, "n") in the callee
--   def FUNC NAME                closure, name under which it was defined
--   main FUNC, thread THREAD, ff NUMBER NAME, lines FUNC LINE...
local getinfo, format = debug.getinfo, string.format
local addr = function(o) return (tostring(o):match("0x(%x+)")) end
local out, seen, quiet = {}, {}, false
local alive = {}
local function emit(...)
  local s = table.concat({ ... }, " ")
  if not seen[s] then seen[s] = true out[#out + 1] = s end
end

local function rec(...)
  if quiet then return end
  local me, from = getinfo(1, "n"), getinfo(2, "Slf")
  if from.what ~= "C" then
    alive[from.func] = true
    emit("call", addr(from.func), from.currentline, me.name and me.namewhat or "none", me.name or "")
  end
  return nil
end

function global_rec(...) return rec and (rec(...)) end  -- itself calls by upvalue
global_rec = rec
local obj = { field = rec, method = rec, inner = { deep = rec, [1] = rec } }
local mt = {}
for _, ev in ipairs { "index", "newindex", "call", "add", "sub", "mul", "div", "mod", "pow", "unm", "concat",
                      "lt", "le", "eq", "len" } do
  mt["__" .. ev] = rec
end
local m, m2 = setmetatable({}, mt), setmetatable({}, mt)
local upvalue_rec, key = rec, "field"

local function forms(param, ...)
  local loc = rec
  loc()
  param()
  global_rec()
  obj.field()
  obj:method()
  obj.inner.deep()
  obj.inner[1]()
  obj[key]()
  upvalue_rec()
  ;(rec)()
  ;(function(...) return rec end)()()
  local copy = loc
  copy(1, 2, 3)
  loc(...)
  loc((loc))
  select(1, rec)()
  ;(obj.field or loc)()
  local t = { rec, loc }
  t[1]()
  t[2](t)
  do
    local shadow = rec
    shadow()
  end
  do
    local other = rec
    other()
  end
  local x = loc() or 1
  if loc() then return end
  while loc() do break end
  repeat until not loc()
  x = { loc(), loc }
  x = obj.field(loc) and 1
  return 1
end

local function metas()
  local x
  x = m.absent
  m.absent = 1
  x = m[1]
  m[1] = 2
  x = m[key]
  m[key] = 3
  m()
  x = m + 1
  x = 1 + m
  x = m - m2
  x = m * 2
  x = m / 2
  x = m % 2
  x = m ^ 2
  x = -m
  x = m .. "s"
  x = m .. m2
  x = m < m2
  x = m <= m2
  x = m > m2
  x = m >= m2
  x = m == m2
  x = m ~= m2
  x = obj.inner[m.absent2]
  if m < m2 then x = 1 end
  if not (m == m2) then x = 2 end
end

local function iterators()
  for a, b in rec do break end
  for a, b in rec, 1, 2 do break end
  for k in obj.field, nil do end
  for i = 1, 3 do
    rec()
  end
  for k, v in pairs(obj) do
    if v == rec then v() end
  end
  for k, v in next, obj do
    if v == rec then v(k) end
  end
  local nextlike = next
  for k, v in nextlike, obj do rec(k) end
  for i, v in ipairs { rec, rec } do v(i) end
  -- despecialised pairs: ITERN becomes ITERC
  for _, it in ipairs { pairs, function(t) return rec, t end } do
    for k, v in it(obj) do
      rec()
    end
  end
end

local function tail(f) return f(1) end
local function tails()
  tail(rec)
  local r = tail(rec)
  return tail(rec), r
end

local function protected()
  pcall(rec)
  xpcall(rec, rec)
  local co = coroutine.wrap(function() rec() coroutine.yield() rec() end)
  co()
  co()
  table.sort({ 3, 2, 1 }, function(a, b) rec() return a < b end)
  string.gsub("abc", ".", function() rec() end)
end

local function hot()
  -- compiled: bytecode gets patched (FORL, ITERL, LOOP, FUNCF, CALL in between)
  local inc = function(x) return x + 1 end
  local s = 0
  quiet = true
  for i = 1, 300 do
    s = inc(s)
    local j = 0
    while j < 5 do
      j = inc(j)
      rec()
    end
    for k, v in pairs(obj) do s = s + 1 end
  end
  quiet = false
  rec()
  for i = 1, 2 do
    rec()
    for k, v in pairs(obj) do rec() end
    local j = 0
    while j < 2 do
      j = inc(j)
      rec()
    end
  end
end

local long = {}
for i = 1, 400 do long[i] = format("obj.f%d = rec obj.f%d()", i, i) end
-- more constants than an 8-bit operand can name
local many = assert(loadstring("local obj, rec = ...\n" .. table.concat(long, "\n"), "=many"))
local empty = "\n"
-- line tables of 2 and 4 bytes
local wide = assert(loadstring("local rec = ...\n" .. empty:rep(300) .. "rec()\n" .. empty:rep(300) .. "rec()", "=wide"))
local wider = assert(loadstring("local rec = ...\n" .. empty:rep(70000) .. "rec()\n" .. empty:rep(9) .. "rec()", "=wider"))
local stripped = assert(loadstring(string.dump(loadstring("local r = ... r() global_rec() obj = { f = r } obj.f()"), true)))

for i = 1, 2 do
  forms(rec, rec)
  metas()
  iterators()
  tails()
  protected()
end
hot()
many(obj, rec)
wide(rec)
wider(rec)
stripped(rec)

-- definitions
local defs = assert(loadstring([[
local expect = ...
local function lfunc() end expect(lfunc, "lfunc")
local lvar = function() end expect(lvar, "lvar")
local a, b = function() end, function() end expect(a, "a") expect(b, "b")
function gfunc() end expect(gfunc, "gfunc")
gvar = function() end expect(gvar, "gvar")
local M = {} function M.foo() end expect(M.foo, "M.foo")
function M:bar() end expect(M.bar, "M.bar")
M.baz = function() end expect(M.baz, "M.baz")
M.sub = {} function M.sub.deep() end expect(M.sub.deep, "M.sub.deep")
local T = { run = function() end, nested = { go = function() end } }
expect(T.run, "T.run") expect(T.nested.go, "T.nested.go")
G = { run = function() end } expect(G.run, "G.run")
M.handlers = { get = function() end } expect(M.handlers.get, "M.handlers.get")
function string.luasym_added() end expect(string.luasym_added, "string.luasym_added")
string.luasym_added = nil
local S = setmetatable({}, { __index = function() end }) expect(getmetatable(S).__index, "__index")
local up, upt = nil, {}
local function setter() up = function() end function upt.f() end end setter()
expect(up, "up", setter) expect(upt.f, "upt.f", setter)
lvar = function() end expect(lvar, "lvar")
local R = (function() return { ret = function() end, [1] = function() end } end)
expect(R().ret, "ret", R)
expect((function() return 1 end), "")
local w = tostring(function() end)
local x1 do local inner = function() end expect(inner, "inner") x1 = inner end
local second = x1
M.arr = {} M.arr[1] = function() end expect(M.arr[1], "")
local cond = M and function() end or nil expect(cond, "")
]], "=defs"))
local keep = {}
defs(function(f, name, parent)
  keep[#keep + 1] = { f, parent }
  emit("def", addr(parent or defs), addr(f), name == "" and "-" or name)
end)

for _, f in ipairs { forms, metas, iterators, hot, many, wide, wider, protected } do
  local lines = {}
  for l in pairs(getinfo(f, "L").activelines) do lines[#lines + 1] = l end
  table.sort(lines)
  emit("lines", addr(f), table.concat(lines, " "))
end

for _, mod in ipairs { "jit.util", "jit.profile", "ffi", "string.buffer", "table.new", "table.clear" } do
  pcall(require, mod)
end
for _, mod in ipairs { "thread.exdata", "table.clone", "table.isarray", "table.nkeys", "table.isempty" } do
  pcall(require, mod)
end
for i, name in pairs(require("jit.vmdef").ffnames) do
  if i > 1 then emit("ff", i, name) end
end
if arg[1] == "sandbox" then
  -- a program that moves library functions about
  table.unpack, print, string.dump, os = unpack, io.write, nil, nil
  mymod = { fmt = string.format }
  package.loaded.mymod = mymod
end
local co = coroutine.create(function() end)
emit("thread", addr(co))
io.stdout:write(table.concat(out, "\n"), "\nready\n")
io.stdout:flush()
io.read()

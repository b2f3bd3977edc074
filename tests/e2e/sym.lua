-- SPDX-License-Identifier: BSD-2-Clause
-- Calls a recording function in every way that Lua can call one, one call per line, and prints for each
-- what the interpreter itself calls it. Then waits on stdin, so that test_luasym.py or test_pucsym.py
-- (sym.py) can read this process. For LuaJIT, which says of itself that it is 5.1, and Lua 5.1 to 5.5.
--   call FUNC LINE WHAT NAME     closure, line of the call, debug.getinfo(1, "n") in the callee
--   def PARENT FUNC NAME         closure, name under which it was defined
--   about FUNC FIRST LAST SOURCE closure, lines and chunk name
--   lines FUNC LINE...           lines that have code
--   thread THREAD, cfunc FUNC NAME, ff NUMBER NAME (LuaJIT's fast functions)
local getinfo, format = debug.getinfo, string.format
local load = loadstring or load
local version = tonumber(_VERSION:match("5%.(%d)"))
local addr = function(o) return (tostring(o):match("0x(%x+)")) or tostring(o):match("(%x+)$") end
local out, seen, quiet = {}, {}, false
local alive = {}
local function emit(...)
  local s = table.concat({ ... }, " ")
  if not seen[s] then seen[s] = true out[#out + 1] = s end
end

local function name_of(me)
  if not me.name then return "none", "" end
  if me.namewhat == "metamethod" and version >= 4 and me.name ~= "order" then return "metamethod", "__" .. me.name end
  return (me.namewhat:gsub(" ", "_")), me.name
end

-- 5.1 counts a lost tail call as a level of its own
local function rec(...)
  if quiet then return end
  local me, from = getinfo(1, "n"), getinfo(2, "Slf")
  if version > 1 and getinfo(1, "t").istailcall then return end
  if from.what ~= "C" and from.what ~= "tail" then
    alive[#alive + 1] = from.func
    emit("call", addr(from.func), from.currentline, name_of(me))
  end
  return nil
end

function global_rec(...) return rec and (rec(...)) end  -- itself calls by upvalue
global_rec = rec
local obj = { field = rec, method = rec, inner = { deep = rec, [1] = rec }, ["long key: " .. ("x"):rep(60)] = rec }
local mt = {}
for _, ev in ipairs { "index", "newindex", "call", "add", "sub", "mul", "div", "mod", "pow", "unm", "concat",
                      "lt", "le", "eq", "len", "idiv", "band", "bor", "bxor", "shl", "shr", "bnot", "close" } do
  mt["__" .. ev] = rec
end
local m, m2 = setmetatable({}, mt), setmetatable({}, mt)
local upvalue_rec, key = rec, "field"

-- Without debug information; string.dump strips from 5.3 on, and in LuaJIT.
local function strip(source)
  if version >= 3 or jit then return assert(load(string.dump(assert(load(source)), true))) end
  local name = os.tmpname()
  local luac = assert(io.popen(format("luac5.%d -s -o %s -", version, name), "w"))
  luac:write(source)
  luac:close()
  local f = assert(loadfile(name))
  os.remove(name)
  return f
end

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
  obj[loc() or "field"]()
  upvalue_rec()
  ;(rec)()
  ;(function(...) return rec end)()()
  local copy = loc
  copy(1, 2, 3)
  loc(...)
  loc((loc))
  select(1, rec)()
  ;(obj.field or loc)()
  ;(loc and obj.field)()
  ;(param or loc or rec)()
  local t = { rec, loc }
  t[1]()
  t[2](t)
  t["field"] = rec
  t.field()
  t["a b"] = rec
  t["a b"]()
  local k = "field"
  t[k]()
  obj.inner[k] = rec
  obj.inner[k]()
  obj["long key: " .. ("x"):rep(60)]()
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
  x = obj:field(loc, ...) or 1
  x = global_rec(global_rec(), obj.field())
  x = (x and loc or global_rec)()
  goto_like = rec
  goto_like()
  _G.goto_like()
  _G["goto_like"]()
  return 1
end

-- No locals: what is called lies in the first register, which in 5.1 the words behind CLOSURE name.
local function closures()
  global_rec(function() return upvalue_rec end)
  global_rec(function() return key, upvalue_rec end, 1)
  obj.field(function() return upvalue_rec end)
  obj:method(function() return upvalue_rec, key end)
  upvalue_rec(function() return key end)
  global_rec(function() return key end, function() return upvalue_rec, key end)
  global_rec({ function() return upvalue_rec end })
  do local own = key global_rec(function() own = upvalue_rec end) end
end

local function metas()
  local x
  x = m.absent
  m.absent = 1
  x = m[1]
  m[1] = 2
  x = m[key]
  m[key] = 3
  pcall(function() x = m:nomethod() end)
end

local function metas2()
  local x
  m()
  x = m + 1
  x = 1 + m
  x = m + m2
  x = m - m2
  x = m - 3
  x = m * 2
  x = m / 2
  x = m % 2
  x = m ^ 2
  x = 2 ^ m
  x = -m
  x = #m
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
  for i = 1, 2 do
    local inside = rec
    inside(i)
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
  -- despecialised pairs: LuaJIT's ITERN becomes ITERC
  for _, it in ipairs { pairs, function(t) return rec, t end } do
    for k, v in it(obj) do
      rec()
    end
  end
  for i = 3, 1, -1 do global_rec(i) end
  local after = rec
  after()
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
  -- LuaJIT compiles this: bytecode gets patched (FORL, ITERL, LOOP, FUNCF, CALL in between)
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

local newer = version >= 3 and load([[
local m, m2, rec = ...
local x
x = m // 2
x = m // m2
x = m & 1
x = m | m2
x = m ~ 3
x = m << 2
x = 2 << m
x = m >> m2
x = ~m
x = m < 1
x = 1 < m
x = m <= 1.0
x = m > 5
x = m >= 5
x = 7 // m
x = m & m2
]], "=newer") or nil
local envs = version >= 2 and load([[
local rec, obj = ...
local function with(_ENV) local _ = nil
  rec()
  field()
  obj.field()
end
local upobj = obj
local t = setmetatable({ rec = rec, obj = obj }, { __index = _ENV })
with({ rec = rec, field = rec, obj = obj })
do
  local _ENV = t
  rec()
  obj.field()
  function other() return (rec()) end
  other()
end
goto done
::done:: rec()
for a in rec do end
("x").rep("x", 1)
]], "=envs") or nil
local closes = version >= 4 and load([[
local m, rec = ...
do
  local c <close> = m
  rec()
end
local k <const> = "field"
local n <const> = 5
local function f()
  local c <close> = m
  return 1
end
f()
rec(n, k)
local t = { [5] = rec, [300] = rec, field = rec }
t[5]()
t[n]()
t[k]()
t[300]()
]], "=closes") or nil

local long = {}
for i = 1, 700 do long[i] = format("obj.f%d = rec obj.f%d() obj:f%d()", i, i, i) end
-- more constants than an 8- or 9-bit operand can name
local many = assert(load("local obj, rec = ...\n" .. table.concat(long, "\n"), "=many"))
-- the globals, too: their names are constants that have to be loaded first
for i = 1, 700 do long[i] = format("g%d = rec\ng%d() ", i, i) end
local globals = assert(load("local rec = ...\n" .. table.concat(long, "\n"), "=globals"))
local empty = "\n"
-- differences of lines that do not fit one byte, or two; more instructions than between two absolute lines
local wide = assert(load("local rec = ...\n" .. empty:rep(300) .. "rec()\n" .. empty:rep(300) .. "rec()", "=wide"))
local wider = assert(load("local rec = ...\n" .. empty:rep(70000) .. "rec()\n" .. empty:rep(9) .. "rec()", "=wider"))
local dense = assert(load("local rec = ...\n" .. ("rec() "):rep(500) .. "\n" .. ("rec()\n"):rep(500), "=dense"))
local back = assert(load("local rec = ... rec(\n\n\n1,\n2,\nrec())\n" .. ("rec(1,\nrec(\n),2\n)"):rep(200, ";"):gsub("%)rec", ");rec"), "=back"))
local stripped = strip("local r = ... r() global_rec() obj = { f = r } obj.f() obj:f() local up = r; (function() up() end)()")

for i = 1, 2 do
  forms(rec, rec)
  closures()
  metas()
  metas2()
  iterators()
  tails()
  protected()
end
hot()
for _, f in ipairs { many, wide, wider, dense, back, stripped, globals } do
  f(f == many and obj or rec, rec)
end
if newer then newer(m, m2, rec) end
if envs then envs(rec, obj) end
if closes then closes(m, rec) end

-- definitions
local text = [[
local expect = ...
local function lfunc() end expect(lfunc, "lfunc")
local lvar = function() end expect(lvar, "lvar")
local function selfish() return selfish end expect(selfish, "selfish")
local a, b = function() return a end, function() return lvar end expect(a, "a") expect(b, "b")
function gfunc() end expect(gfunc, "gfunc")
gvar = function() return lvar, lfunc end expect(gvar, "gvar")
local M = {} function M.foo() end expect(M.foo, "M.foo")
function M:bar() return M end expect(M.bar, "M.bar")
M.baz = function() return M, lvar end expect(M.baz, "M.baz")
M.sub = {} function M.sub.deep() end expect(M.sub.deep, "M.sub.deep")
local T = { run = function() return M end, nested = { go = function() return lvar, M end } }
expect(T.run, "T.run") expect(T.nested.go, "T.nested.go")
G = { run = function() end } expect(G.run, "G.run")
M.handlers = { get = function() end } expect(M.handlers.get, "M.handlers.get")
function string.sym_added() end expect(string.sym_added, "string.sym_added")
string.sym_added = nil
local S = setmetatable({}, { __index = function() end }) expect(getmetatable(S).__index, "__index")
local up, upt = nil, {}
local function setter() up = function() end function upt.f() end end setter()
expect(up, "up", setter) expect(upt.f, "upt.f", setter)
lvar = function() return 2 end expect(lvar, "lvar")
local R = (function() return { ret = function() return up end, [1] = function() end } end)
expect(R().ret, "ret", R)
expect((function() return 1 end), "")
local w = tostring(function() end)
local x1 do local inner = function() end expect(inner, "inner") x1 = inner end
local second = x1
M.arr = {} M.arr[1] = function() end expect(M.arr[1], "")
M["a key"] = function() end expect(M["a key"], "M.a key")
local cond = M and function() end or nil expect(cond, "")
local p1, p2 p2, p1 = function() end, function() end expect(p2, "p2") expect(p1, "p1")
local big = { 1, 2, 3, function() return M end, n = 5, late = function() end } expect(big.late, "big.late")
local function tab() Q = { inq = function() return up, upt end, other = function() return upt end } return tab end tab()
expect(Q.inq, "Q.inq", tab) expect(Q.other, "Q.other", tab)
]]
local keep = {}
local function expect_in(parent)
  return function(f, name, p)
    keep[#keep + 1] = { f, p }
    emit("def", addr(p or parent), addr(f), name == "" and "-" or name)
  end
end
local defs = assert(load(text, "=defs"))
defs(expect_in(defs))
-- keys that do not fit an operand
for i = 1, 700 do long[i] = format("%q", "constant" .. i) end
local manydefs = assert(load("local expect = ... local K = {" .. table.concat(long, ",") .. [[}
local M = {} function M.far() return expect, K, M end expect(M.far, "M.far")
function gfar() return expect, K, M end expect(gfar, "gfar")
GF = { run = function() return expect end, go = { deep = function() end } } expect(GF.run, "GF.run") expect(GF.go.deep, "GF.go.deep")
local function setter() function M.up() return K end up_far = function() return M, K end end setter()
expect(M.up, "M.up", setter) expect(up_far, "up_far", setter)
]], "=manydefs"))
manydefs(expect_in(manydefs))
-- names of locals are gone, those of globals and fields are not
local bare = strip([[
local expect = ...
function gbare() end expect(gbare, "gbare")
BT = { run = function() return expect end } expect(BT.run, "BT.run")
local M = {} function M.fld() end expect(M.fld, "fld")
]])
bare(expect_in(bare))

for _, f in ipairs { forms, closures, metas, iterators, hot, protected, many, wide, wider, dense, back, newer, envs, closes } do
  local lines = {}
  for l in pairs(getinfo(f, "L").activelines) do lines[#lines + 1] = l end
  table.sort(lines)
  emit("lines", addr(f), table.concat(lines, " "))
end
if jit then
  for _, mod in ipairs { "jit.util", "jit.profile", "ffi", "string.buffer", "table.new", "table.clear", "thread.exdata",
                         "table.clone", "table.isarray", "table.nkeys", "table.isempty" } do
    pcall(require, mod)
  end
  for i, name in pairs(require("jit.vmdef").ffnames) do
    if i > 1 then emit("ff", i, name) end
  end
else
  for _, f in ipairs { forms, rec, many, wider, defs, bare, stripped } do
    local i = getinfo(f, "S")
    emit("about", addr(f), i.linedefined, i.lastlinedefined, f == stripped and 1 or f == bare and 1 or 0, i.source)
  end
  for lib, t in pairs { [""] = _G, string = string, table = table, math = math, os = os, io = io, debug = debug,
                        coroutine = coroutine, package = package, utf8 = utf8, bit32 = bit32,
                        ["io.method"] = getmetatable(io.stdout).__index } do
    for k, v in pairs(t) do
      if type(v) == "function" and getinfo(v, "S").what == "C" and type(k) == "string" and k:match("^[%l_%d]+$")
          and k ~= "gfind" and k ~= "mod" and not (lib == "" and k == "loadstring" and version > 1)
          and not (lib == "" and k == "unpack" and version > 1) then
        emit("cfunc", addr(v), (lib == "" and "" or lib .. ".") .. k)
      end
    end
  end
end
if arg[1] == "sandbox" then
  -- a program that moves library functions about
  mymod = { fmt = string.format, again = print }
  table.pack, print, string.dump, os = string.format, io.write, nil, nil
  unpack = unpack or table.unpack
  table.unpack = unpack
  fmt = string.format
  mymod.mymod = mymod
  package.loaded.mymod = mymod
end
local co = coroutine.create(function() end)
emit("thread", addr(co))
io.stdout:write(table.concat(out, "\n"), "\nready\n")
io.stdout:flush()
io.read()

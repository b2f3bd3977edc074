-- SPDX-License-Identifier: BSD-2-Clause
-- usage: idioms.lua, under LuaJIT with its JIT compiler on
-- Compiles a loop with each of the idioms below, alone in a function that is inlined, between two others. For each
-- trace it prints how many IR instructions there were before each bytecode was recorded:
--
--	trace NUMBER IDIOM
--	INSTRUCTIONS LINEDEFINED		LINEDEFINED is -2 for a C function, -1 for bytecode of a built-in one
--
-- then "ready", and waits for a line of input.
jit.opt.start("maxtrace=8000", "maxmcode=65536", "hotexit=200") -- no side traces
local util = require("jit.util")
local shared = [==[
local ffi, bit = require"ffi", require"bit"
local band, bor, bxor, lshift, rshift, arshift, rol, ror, bnot, bswap, tobit, tohex = bit.band, bit.bor, bit.bxor, bit.lshift, bit.rshift, bit.arshift, bit.rol, bit.ror, bit.bnot, bit.bswap, bit.tobit, bit.tohex
local floor, ceil, min, max, abs, sqrt, sin, log, fmod, modf, ldexp, random, atan2, pow, deg, rad = math.floor, math.ceil, math.min, math.max, math.abs, math.sqrt, math.sin, math.log, math.fmod, math.modf, math.ldexp, math.random, math.atan2, math.pow, math.deg, math.rad
local byte, sub, find, char, upper, lower, reverse, rep, format, len = string.byte, string.sub, string.find, string.char, string.upper, string.lower, string.reverse, string.rep, string.format, string.len
local insert, remove, concat, unpack = table.insert, table.remove, table.concat, unpack
local rawget, rawset, rawequal, rawlen = rawget, rawset, rawequal, rawlen
local tostring, tonumber, type, select, next, pcall, assert, setmetatable, getmetatable, ipairs, pairs = tostring, tonumber, type, select, next, pcall, assert, setmetatable, getmetatable, ipairs, pairs
local S = "The quick brown fox jumps over the lazy dog"
local arr, map, names, strs = {}, {}, {}, {}
for i = 0, 63 do arr[i] = i * 1.5 names[i] = "key" .. i map["key" .. i] = i strs[i] = tostring(i * 7.5) end
local nested = {a = {b = {c = {d = 1.5}}}, list = {{x = 1, y = 2}, {x = 3, y = 4}}, pos = {x = 1.5, y = 2.5}}
local up, cnt = 1.5, 0
local stack = {} for i = 1, 40 do stack[i] = i end
local M = {} M.__index = M
M.__eq = function(a, b) return a.v == b.v end
M.__lt = function(a, b) return a.v < b.v end
M.__le = function(a, b) return a.v <= b.v end
M.__concat = function(a, b) return (type(a) == "table" and a.v or a) * 2 end
M.__unm = function(a) return a.v / 3 end
M.__add = function(a, b) return a.v + (type(b) == "table" and b.v or b) end
M.__mul = function(a, b) return a.v * 1.5 end
M.__len = function(a) return 5 end
M.__call = function(self, k) return k / self.v end
M.__newindex = function(t, k, v) rawset(nested, k, v) end
M.__mod = function(a, b) return a.v % 7 end
function M:get() return self.v end
function M:set(v) self.v = v return self end
local D = setmetatable({}, {__index = M}) D.__index = D
local A, B = setmetatable({v = 2}, M), setmetatable({v = 3}, M)
local O = setmetatable({v = 4}, D)
local dyn = setmetatable({}, {__index = function(t, k) return #k end})
local dynn = setmetatable({}, {__index = function(t, k) return k * 2 end})
local weak = setmetatable({}, {__mode = "k"})
ffi.cdef[[typedef struct { double x, y; int id; float f; uint8_t b[8]; } GP; typedef struct { uint8_t r,g,b,a; } GC4; typedef union { double d; int64_t i; uint32_t u[2]; } GU; size_t strlen(const char *); int abs(int); double fabs(double); int toupper(int); void *memset(void *, int, size_t);int memcmp(const void*, const void*, size_t);]]
local C = ffi.C
local gp, px, ia, da, str = ffi.new("GP[16]"), ffi.new("GC4[64]"), ffi.new("int32_t[64]", 3), ffi.new("double[64]", 1.5), ffi.new("char[64]", "hello world, how are you")
local u8, i64a, un = ffi.new("uint8_t[256]", 7), ffi.new("int64_t[64]", 99), ffi.new("GU")
local fa, u32a = ffi.new("float[64]", 1.5), ffi.new("uint32_t[64]", 77)
local ptr = ffi.cast("double *", da)
local vec
vec = ffi.metatype("struct { double x, y; }", {__add = function(a, b) return vec(a.x + b.x, a.y + b.y) end, __index = {dot = function(a, b) return a.x * b.x + a.y * b.y end}, __len = function(a) return 2 end})
local v1, v2 = vec(1, 2), vec(3, 4)
local DEBUG, FAST, CT = false, true, ffi.typeof("GC4")
local function va(...) return select('#', ...) end
local function vb(...) local a, b = ... return a * 2 + (b or 1) end
local function vc(f, ...) return f(...) end
local function two(a, b) return b, a end
local function opt(o) o = o or 3 return o * 2 end
local function cls(x) return function(y) return x + y end end
local c7 = cls(7)
local buffer = require"string.buffer"
local buf = buffer.new(256)
local function before(x) return x * 1.5 end
local function after(x) return x / 1.25 + 1 end
]==]

-- the function's text, one a line
local idioms = [==[
insert(stack, x) return #stack > 50 and remove(stack) + remove(stack) or 1
stack[#stack + 1] = x return (remove(stack))
insert(stack, x) stack[#stack] = nil return 1
return remove(stack) and insert(stack, 1) or 1
return #concat({"a", "b", "c"})
return #concat(strs, ",", 1, 5)
return #stack
return stack[#stack]
local s = 0 for j = 1, 3 do s = s + stack[j] end return s
local s = 0 for k, v in ipairs(stack) do if k > 4 then break end s = s + v end return s
local n = 0 for k, v in pairs(nested) do n = n + 1 end return n
local n = 0 for k in next, nested do n = n + 1 end return n
return va(i, x, 3)
return vb(i, x)
return vc(two, i, x)
return vc(va, i, x)
return (select(2, i, x, 3))
local a, b = two(i, x) return a - b
local t = {i, x} return t[1] + t[2]
local t = {x = i, y = x} return t.x + t.y
local a, b, c = unpack(stack, 1, 3) return a + b + c
return byte(S, i % 40 + 1)
local a, b = byte(S, i % 40 + 1, i % 40 + 2) return a + b
return #sub(S, i % 20 + 1, i % 20 + 9)
return #sub(S, i % 20 + 1)
return #sub(S, -5)
return sub(S, i % 20 + 1, i % 20 + 1) == "q" and 1 or 2
return S:sub(i % 20 + 1, i % 20 + 1):byte()
return find(S, "lazy", 1, true)
return (S:find("fox", i % 5 + 1, true))
return #upper(names[i % 64])
return #names[i % 64]:lower()
return #reverse(strs[i % 64])
return #rep("ab", 3)
return #rep(names[i % 64], 2, ",")
return #char(i % 64 + 32, 65)
return #format("%d:%s", i, "x")
return #format("%5.2f", x)
return #format("%s", names[i % 64])
return #format("%x%c", i, 65)
return #("n" .. i)
return #(i .. "")
return #(names[i % 64] .. "/" .. strs[i % 64])
return #("a" .. x .. "b" .. i)
return #tostring(i)
return #tostring(x)
return tonumber(strs[i % 64])
return tonumber(i)
return strs[i % 64] + 1
return strs[i % 64] * 2
return names[i % 64] < "key5" and 1 or 2
return names[i % 64] == "key5" and 1 or 2
return map["key" .. i % 64]
return map[names[i % 64]]
map[names[i % 64]] = i return 1
map[names[i % 64]] = map[names[i % 64]] + 1 return 1
local q = {} q[names[i % 64]] = i return q.key1 or 1
local q = {} q.a = i q.b = x return q.a
return nested.a.b.c.d
nested.a.b.c.d = x return 1
local p = nested.pos p.x, p.y = p.y, p.x return p.x
local p = nested.pos p.x = p.x + x return p.x
return nested.list[i % 2 + 1].x
return arr[i % 64] + arr[(i + 1) % 64]
arr[i % 64] = arr[(i + 3) % 64] return 1
arr[i % 64] = x return arr[1]
return A == B and 1 or 2
return A < B and 1 or 2
return A <= B and 1 or 2
return A > B and 1 or 2
if A >= B then return 1 end return 2
return A .. 5
return -A
return A + B
return A * 3
return A % 3
return A(i)
return A:get()
A:set(i) return 1
return O:get()
return O:set(i):get()
O.v = O.v + 1 return O.v
return dyn.foo
return dynn[i % 10]
A.other = x return 1
return A.get(A)
return rawget(nested, "list") and 1 or 2
rawset(map, "key3", i) return 1
return rawequal(A, B) and 1 or 2
return getmetatable(A) == M and 1 or 2
local o = setmetatable({v = x}, M) return o.v
local o = setmetatable({v = x}, M) return o:get()
up = up + x return up
cnt = cnt + 1 return cnt
cnt = i return 1
return c7(i)
return cls(i)(x)
local f = function(y) return y + i end return f(x)
return band(i, 255) + rshift(i, 3)
return bxor(i, lshift(i, 13))
return bor(lshift(band(i, 255), 8), rshift(band(i, 0xff00), 8))
return bnot(i)
return bswap(i)
return tobit(i * 16777619)
return tobit(i + cnt + 0x428a2f98)
return band(i + 5, 63)
return rol(bxor(i, 7), 5) + ror(i, 3)
return bxor(band(i, 3), band(i, 5), band(i, 6))
return lshift(1, i % 31)
return arshift(i, 2)
return lshift(i, 1)
return band(floor(x), 255)
return #tohex(i)
return random()
return random(10)
return random(5, 10)
return max(0, min(x, 255))
return min(i, 100)
return max(i, x, 3)
return floor(x)
return floor(i / 7)
return ceil(x / 2)
return floor(x + 0.5)
return abs(x - 3)
return sqrt(x * x + i * i)
return fmod(x, 7)
return fmod(i, 7)
return (modf(x))
return ldexp(x, 2)
return atan2(x, i)
return log(x)
return log(x, 2)
return log(i, 10)
return math.log10(x)
return math.exp(1 / i)
return sin(x)
return deg(x)
return x ^ 2
return x ^ 0.5
return x ^ 3
return pow(x, 1.5)
return 2 ^ (i % 8)
return i % 10
return i % 8
return x % 7.5
return i % 2 == 0 and 1 or 2
return (i - i % 7) / 7
return -x
return i * 2 - 1
return x * 0
return i / 3
return (i + 1) * (i - 1)
return x - x
return not x and 1 or 2
return x and i or 2
return i > 5 and x or i
local y = x or 3 return y * 2
return opt(nil)
return opt(i)
if i > 3 and x < 1e300 then return 1 else return 2 end
if type(i) == "number" then return 1 end return 2
return type(x) == "table" and 1 or 2
assert(type(i) == "number", "bad") return 1
assert(x, "bad") return i
local ok, v = pcall(two, i, x) return v
local ok, v = pcall(opt, i) return v
local c = 0 while c < 3 do c = c + 1 end return c
local c = i repeat c = c / 2 until c < 1000 return c
for j = 1, 3 do if j == 2 then goto cont end cnt = cnt + j ::cont:: end return cnt
local t = {} for j = 1, 3 do t[j] = j end return #t
local t = {1, 2, 3} return t[i % 3 + 1]
weak[A] = i return weak[A]
local p = gp[i % 16] p.x = p.x + 1 return p.x
local p = gp[i % 16] p.id = p.id + 1 return p.id
local p = gp[3] p.f = x return p.f
gp[2].b[i % 8] = i return gp[2].b[1]
local c = px[i % 64] c.g = c.r * 3 return c.g
return ia[i % 64] + ia[(i + 1) % 64]
ia[i % 64] = i return 1
ia[i % 64] = x return 1
da[i % 64] = da[i % 64] + 1 return da[1]
fa[i % 64] = x return fa[3]
u32a[i % 64] = i return u32a[5]
return u32a[i % 64]
return ptr[i % 64]
return (ptr + i % 10)[2]
return u8[band(i, 255)]
u8[i % 256] = i return 1
return tonumber(i64a[i % 64])
i64a[i % 64] = i64a[i % 64] + 1 return 1
i64a[3] = i return tonumber(i64a[3])
return tonumber(C.strlen(str))
return C.abs(-i)
return C.fabs(-x)
return C.toupper(i % 90)
return C.memcmp(str, str, 5)
return #ffi.string(str)
return #ffi.string(str, 5)
ffi.copy(u8, str, 16) return 1
ffi.copy(u8, S) return 1
ffi.fill(u8, 16, 1) return 1
ffi.fill(u8, 16) return 1
local a = ffi.new("int[4]") a[1] = i return a[1]
local a = ffi.new("GP") a.x = x return a.x
local a = ffi.new("GP", x, x) return a.y
local p = ffi.cast("int32_t *", u8) return p[i % 8]
un.d = x return un.u[0]
un.i = i return tonumber(un.i)
local v = v1 + v2 return v.x
return v1:dot(v2)
return #v1
local v = vec(i, x) return v.x
return tonumber(i64a[1] / 7)
return tonumber(i64a[1] % 7LL)
return tonumber(bxor(i64a[2], lshift(i64a[3], 3)))
return i64a[1] < i64a[2] and 1 or 2
return i64a[1] == 99 and 1 or 2
return tonumber(0LL + i)
return tonumber(i64a[i % 64] * 3 + 1)
return tonumber(ffi.cast("int32_t", x))
return tonumber(ffi.cast("uint32_t", i))
return ffi.sizeof("GP")
return ffi.istype("GP", gp[0]) and 1 or 2
return ptr == da and 1 or 2
return str[i % 20]
buf:put("abc", i) return #buf:get()
buf:reset() buf:put(names[i % 64]) return #buf
buf:put("x") buf:putf("%d", i) return #buf:tostring() + #buf:get()
buf:reset():put(i, "k") return #buf:get(1)
local t = nested.list for j = 1, #t do cnt = cnt + t[j].x end return cnt
local h = 0 local s = names[i % 64] for j = 1, #s do h = (h * 31 + byte(s, j)) % 65536 end return h
local s = names[i % 64] local h = 5 for j = 1, #s do h = bxor(h * 33, byte(s, j)) end return h
return S:len() + #names[i % 64]
return S:byte(i % 10 + 1)
return names[i % 64]:byte(-1)
return (names[i % 64]:gsub("k", "j")):len()
return names[i % 64]:match("%d+") + 1
return tonumber("0x10") + i
return tonumber(names[i % 64]:sub(4)) + 1
return select(-1, i, x)
return math.pi * x * x
return x == x and 1 or 2
return math.huge > x and 1 or 2
return #stack % 2
return (i % 4 == 0 and i % 100 ~= 0) and 1 or 0
local a, b = i, 12 while b ~= 0 do a, b = b, a % b end return a
local r = x for j = 1, 4 do r = (r + x / r) / 2 end return r
return floor(x * 100 + 0.5) / 100
local x2, y2 = x * x, i * i return x2 / (x2 + y2)
return math.floor((1 + i) / 2)
return string.format("%02d:%02d", i % 24, i % 60):len()
return ("x"):rep(i % 5):len()
return nested.missing == nil and 1 or 2
return nested[names[i % 64]] == nil and 1 or 2
nested.tmp = i nested.tmp = nil return 1
local q = {} q[1] = i q[2] = x q[#q + 1] = 5 return #q
local q = {n = 0} q.n = q.n + 1 q[q.n] = i return q[1]
return #{i, x, 3}
return next(nested) and 1 or 2
if DEBUG then return 1.5 end return x * 0.5
return DEBUG and 1.5 or x * 0.5
if not FAST then return 1.5 end return x * 0.5
if FAST then return x * 0.5 end return 1.5
if DEBUG == true then return 1.5 end return x * 0.5
if getmetatable(arr) then return 1.5 end return x * 0.5
if getmetatable(A) then return x * 0.5 end return 1.5
if rawequal(arr, x) then return 1.5 end return x * 0.5
if ffi.istype(CT, x) then return 1.5 end return x * 0.5
if ffi.abi("32bit") then return 1.5 end return x * 0.5
if not pcall(floor, x) then return 1.5 end return x * 0.5
local ok, v = pcall(floor, x * 3) return ok and v or 0.5
return rawget(arr, i % 60) or 1.5
local v = rawget(arr, i % 60) if v == nil then v = 1.5 end return v
return -x * 0.5 + 3
return 0.7 + -x
return -x + 0.7
return 0.7 - -x
return -x - 0.7
return -x / 3
return -x * -i
return -(-x) * 0.5
return -x * 0.5 + -x
return 3 * -x
]==]

local events, traces, kept, idiom = {}, {}, {}, 0
local function record(tr, func, pc)
  local i = pc >= 0 and util.funcinfo(func, pc) or {linedefined = -2}
  events[#events + 1] = ("%d %d"):format(util.traceinfo(tr).nins, i.linedefined)
end
local function trace(what, tr)
  if what == "start" then
    events = {}
  elseif what == "stop" then
    traces[#traces + 1] = ("trace %d %d\n%s"):format(tr, idiom, table.concat(events, "\n"))
  end
end
jit.off(record)
jit.off(trace)

for text in idioms:gmatch("[^\n]+") do
  idiom = idiom + 1
  local program = shared .. "local function idiom(i, x)\n" .. text .. [[ 
end
return function(n)
  local s, x = 0, 1.5
  for i = 1, n do
    x = before(i)
    s = s + idiom(i, x)
    x = after(x)
  end
  return s
end]]
  local ok, run = pcall(assert(loadstring(program, "=idiom")))
  if ok then -- else the build has not what it needs
    kept[idiom] = run -- and its traces
    jit.attach(trace, "trace")
    jit.attach(record, "record")
    pcall(run, 300)
    jit.attach(trace)
    jit.attach(record)
  end
end
print(table.concat(traces, "\n"))
print("ready")
io.stdout:flush()
io.read()

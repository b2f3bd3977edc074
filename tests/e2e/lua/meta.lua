-- SPDX-License-Identifier: BSD-2-Clause
local setmetatable, rawget = setmetatable, rawget

local V = {}
V.__index = V
local function vec(x) return setmetatable({ x = x }, V) end --> setmetatable --~ maybe
function V.__add(a, b) return vec(a.x + b.x) end --: add --> vec
function V.__unm(a) return vec(-a.x) end --: unm --> vec
function V.__lt(a, b) return a.x < b.x end --: lt
function V.__le(a, b) return a.x <= b.x end --: le
function V.__eq(a, b) return a.x == b.x end --: eq
function V.__concat(a, b) return "v" .. (a.x or b.x) end --: concat
function V.__call(self, y) return self.x + y end --: call
function V.__len(a) return 3 end --: len
function V:get() return self.x end --: get

local function operators(n)
  local v, w, s = vec(1), vec(2), 0 --> vec, setmetatable
  for i = 1, n do
    v = v + w --> add, vec, setmetatable
    v = -v --> unm, vec, setmetatable
    if v < w then s = s + 1 end --> lt
    if v <= w then s = s + 1 end --> le
    if v == w then s = s + 1 end --> eq
    local c = v .. w --> concat
    s = s + v(i) --> call
    s = s + v:get() --> get
  end
  return s
end

local function lookup(t, k) return k * 2 end
local function store(t, k, v)
  rawset(t, 1, v) --> rawset
end
local lazy = setmetatable({}, { __index = lookup, __newindex = store })

local function index(n)
  local s = 0
  for i = 1, n do
    s = s + lazy[i + 1] --> lookup
    lazy[i + 7] = s --> store, rawset
  end
  return s
end

local base = { deep = 1 }
local chain = setmetatable({}, { __index = setmetatable({}, { __index = base }) })
local function chains(n)
  local s = 0
  for i = 1, n do
    s = s + chain.deep
    s = s + (rawget(chain, "deep") or 0) --> rawget
  end
  return s
end

local slow = setmetatable({}, { __index = function(t, k) --: miss
  local s = 0
  for i = 1, 20 do s = s + i % 3 end
  return s
end })

local function misses(n)
  local s = 0
  for i = 1, n do
    s = s + slow.absent --> miss
  end
  return s
end

local cmp = { __lt = function(a, b) return a.k < b.k end } --: lesser
--* table.sort > lesser
local function sorts(n)
  local t = {}
  for i = 1, n do t[i] = setmetatable({ k = i * 7919 % 1031 }, cmp) end --> setmetatable
  table.sort(t) --> table.sort
end

return { "operators", operators, "index", index, "chains", chains, "misses", misses, "sorts", sorts }

-- SPDX-License-Identifier: BSD-2-Clause
local select, unpack = select, unpack or table.unpack

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2) --> fib
end

local function recursion(n)
  local s = 0
  for i = 1, n do
    s = s + fib(7) --> fib
  end
  return s
end

local function count(...)
  local s = 0
  for i = 1, select("#", ...) do --> select
    s = s + (select(i, ...)) --> select
  end
  return s
end

local function pass(a, ...)
  return a + count(...) --> count
end

local function varargs(n)
  local s = 0
  for i = 1, n do
    s = s + pass(i, 2, 3, 4) --> pass
    s = s + count(unpack({ i, 2, 3 })) --> count, unpack, table.unpack
  end
  return s
end

local even, odd
function even(n) --~ maybe
  if n == 0 then return true end
  return odd(n - 1) --> odd -- in PUC Lua for a moment only: it is a tail call
end
function odd(n) --~ always
  if n == 0 then return false end
  return even(n - 1) --> even
end
local function last(n)
  return even(n) --> even
end

local function tails(n)
  for i = 1, n do
    even(15) --> even, odd
    last(8) --> last, even, odd
  end
end

local object = { v = 0 }
function object:bump(by) self.v = self.v + by end
function object.plain(x) return x + 1 end

local function methods(n)
  local x = 0
  for i = 1, n do
    object:bump(i) --> bump
    x = object.plain(x) --> plain
  end
  return x
end

local function adder(k)
  return function(x) return x + k end --: inner
end

local function closures(n)
  local x = 0
  for i = 1, n do
    local f = adder(i) --> adder
    x = f(x) --> inner
  end
  return x
end

local function deep(n)
  if n == 0 then return 0 end
  local r = 1 + deep(n - 1) --> deep
  return r
end

local function depths(n)
  for i = 1, n do
    deep(40) --> deep
  end
end

local function many(a, b, c, d, e, f, g, h)
  return h, g, f, e, d, c, b, a
end

local function results(n)
  local a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8
  for i = 1, n do
    a, b, c, d, e, f, g, h = many(a, b, c, d, e, f, g, h) --> many
    a, b = many(many(a, b, c, d, e, f, g, h)) --> many
    many(1) --> many
  end
  return a
end

return { "recursion", recursion, "varargs", varargs, "tails", tails, "methods", methods, "closures",
  closures, "depths", depths, "results", results }

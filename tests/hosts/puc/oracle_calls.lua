-- SPDX-License-Identifier: BSD-2-Clause
local T = ... -- T[2] says on which line of this file the function that runs begins
local function leaf1(x) T[2] = 3 return x * 2 + 1 end
local function leaf2(x, y, z) T[2] = 4 local a = x + y return a - z end
local function leaf3(...) T[2] = 5 local a, b = ... return a, b end
local function mid1(x)
  T[2] = 6
  local a = leaf1(x) T[2] = 6
  local b, c = 1, leaf2(x, a, 3) T[2] = 6
  local d = string.byte('abc', 2)
  local e = leaf3(a, b) T[2] = 6
  return a + b + c + d + e
end
local function mid2(x)
  T[2] = 14
  local p, q, r, s, t = 1, 2, 3, 4, 5
  local a, b = leaf3(p, q, r, s) T[2] = 14
  local d = math.max(p, q, r)
  local e = leaf2(a, d, t) T[2] = 14
  local f = leaf1(s) T[2] = 14
  return e + f
end
local function fib(n)
  T[2] = 23
  if n < 2 then return n end
  local a = fib(n - 1) T[2] = 23
  local b = fib(n - 2) T[2] = 23
  return a + b
end
function W.calls()
  for i = 1, 200 do
    T[2] = 30
    mid1(i) T[2] = 30
    mid2(i) T[2] = 30
    math.floor(i / 2)
  end
  fib(12)
  T[2] = 0
end

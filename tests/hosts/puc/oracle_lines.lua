-- SPDX-License-Identifier: BSD-2-Clause
-- Of the oracle (oracle.c): functions whose lines are judged. In a chunk "=lines", `for` is on line
-- 2, the lines to judge go from 3 on to `last`, then comes `end`. Each begins with a store of its
-- number.
local T = ...
local load = loadstring or load

local body = {
  'x = (x * 1103515245 + 12345) % 2147483648 y = x * 2 - y z = y - x * z % 7',
  'a[i % 10 + 1] = x y = a[1] + a[2] z = a[3] or 0',
  'h.alpha = x h.beta = h.alpha y = h.beta + h.gamma h.gamma = 1',
  's = "k" .. (i % 50) .. "v"',
  'if x > y then z = z + 1 else z = z - 1 end if z == y then z = 0 end',
  'up = up + 1 y = up * 2 up = up % 1000',
  'g = 1 y = g + 1 z = math.pi + y',
  'y = math.floor(x / 3) z = math.max(y, x, 1)',
  'z = string.byte(s) y = #s + z s = string.rep("ab", 20)',
  't = {x, y, z} y = #t z = t[1]',
  'fn = function() return x + i end',
  's = string.format("%d %s", i, "abc")',
  'y = mt.field z = mt.other mt.third = y',
  'z = -x y = not z x = x + (y and 1 or 2)',
  'y = x ^ 2 % 1000 z = x / 3 y = y + z * 2 - x % 13 z = y * y - z',
  't = {a = x, b = y} h.t = t y = t.a z = h.t.b y = y + z',
  'a[1], a[2], a[3] = a[2] or 1, a[3] or 2, a[1] or 3',
  'b = s < "m" c = s == "ab" b = b and c y = b and 1 or 2',
}

local function make(bodies)
  local src = {
    'local T, a, h, mt, up = ... local x, y, z, s, t, fn, b, c, g = 1, 2, 3, "s" ' ..
      'return function(n)', 'for i = 1, n do'}
  for _, b in ipairs(bodies) do
    local n = #src + 1
    src[n] = 'T[1] = ' .. n .. ' ' .. b
  end
  src[#src + 1] = 'end'
  src[#src + 1] = 'T[1] = 0 end'
  local mt = setmetatable({}, {__index = {field = 1, other = 2}, __newindex = rawset})
  local f = assert(load(table.concat(src, '\n'), '=lines'))
  return f(T, {1, 2, 3}, {gamma = 1}, mt, 0), #src - 2
end

local all, last = make(body)
last_line = last
function W.lines() all(500) end

local each = {}
for i, b in ipairs(body) do
  local two = {}
  for k = 1, #body do two[k] = body[(i + k % 2 - 1) % #body + 1] end
  each[i] = make(two)
end
function W.pairs() for i = 1, #each do each[i](100) end end

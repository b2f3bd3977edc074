-- SPDX-License-Identifier: BSD-2-Clause
-- Of the oracle (oracle.c): ways into a lua_State and out of it, and what a lua_State does
-- in C. Only which one runs is judged: T stays as it is.
local _, resumed, other, burn = ...

function W.nested()
  local function level(n)
    local s = 0
    for i = 1, 30 do s = s + i % 7 end
    if n > 0 then
      local co = coroutine.create(level)
      assert(coroutine.resume(co, n - 1))
    end
    coroutine.yield(s)
    return s
  end
  local co = coroutine.wrap(function() level(6) end)
  co() co()
end

function W.wrap()
  local gen = coroutine.wrap(function()
    for i = 1, 100 do
      local s = tostring(i) .. 'x'
      coroutine.yield(#s)
    end
  end)
  for i = 1, 100 do local x = gen() + math.floor(i / 3) end
end

function W.fromc()
  local co = coroutine.create(function()
    for i = 1, 20 do
      local s = string.rep('x', i)
      burn(20)
      coroutine.yield()
    end
  end)
  assert(resumed(co))
end

function W.errors()
  local co = coroutine.create(function()
    for i = 1, 5 do
      local ok, e = pcall(function() local x = i * 2 error('e' .. x) end)
      coroutine.yield(ok)
    end
    local t = nil
    return t.x
  end)
  for i = 1, 5 do assert(coroutine.resume(co)) end
  assert(not coroutine.resume(co))
end

local mt = {
  __index = function(t, k) return k * 2 end,
  __newindex = function(t, k, v) rawset(t, 'x', v) end,
  __call = function(self, a) return a end,
  __add = function(a, b) return 3 end,
  __lt = function() return true end,
  __concat = function(a, b) return 'c' end,
}

function W.meta()
  local o = setmetatable({}, mt)
  for i = 1, 50 do
    local a = o[i] + (o + 1)
    local b = o < setmetatable({}, mt)
    local c = o .. 'x' o[i] = a
    c = o(a)
  end
end

function W.sort()
  local t = {}
  for i = 1, 60 do t[i] = (i * 7919) % 61 end
  table.sort(t, function(a, b) return a < b end)
end

function W.gsub()
  local n = 0
  local s = ('hello world '):rep(8):gsub('%w+', function(w) n = n + #w return w .. n end)
  s = s:gsub('o', {o = '0'}):upper():find('W0RLD', 1, true)
end

function W.gc()
  local keep = {}
  for i = 1, 300 do
    keep[i % 50 + 1] = {i, {i}, tostring(i)}
    local f = function() return keep end
  end
  if newproxy then
    local p = newproxy(true) getmetatable(p).__gc = function() local x = #keep end
  else
    setmetatable({}, {__gc = function() local x = #keep end})
  end
  local co = coroutine.wrap(function() local t = {} for i = 1, 50 do t[i] = {} end end)
  co()
end

function W.deep()
  local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end
  down(100)
  local function c(n) if n == 0 then return 0 end return (select(2, pcall(c, n - 1))) end
  c(20)
end

function W.tail()
  local function loop(n, a) if n == 0 then return a end return loop(n - 1, a + n) end
  loop(200, 0)
end

function W.strings()
  for i = 1, 30 do
    local s = string.rep('ab', 50)
    local u = string.format('%s %d %g', s, i, i / 3)
    local v = table.concat({u, s, i}, ',')
    local w = v:sub(3, 20):upper():reverse()
  end
end

-- gsub's buffer is on the C stack, above what the collector left there when it was called from
-- there before.
function W.buffers()
  local t = {}
  for i = 1, 200 do t[i] = string.rep('ab', 100 + i) end
  local s = table.concat(t)
  s:gsub('a', function(c) return c:upper() end)
end

function W.conly()
  for i = 1, 20 do
    if not setfenv then
      local co = coroutine.wrap(string.rep) co('xyz', 300)
      local co = coroutine.wrap(burn) co(30)
      local co = coroutine.wrap(coroutine.wrap(function(n) for i = 1, n do end end)) co(40)
    end
  end
end

function W.vms() other(100) for i = 1, 100 do local x = i * 2 end end

if coroutine.close then
  function W.close()
    local co = coroutine.create(load([[
      local x <close> = setmetatable({}, {__close = function()
        local s = 0 for i = 1, 50 do s = s + i end
      end})
      coroutine.yield() ]]))
    coroutine.resume(co) coroutine.close(co)
  end
end

function W.many()
  local cos = {}
  for i = 1, 20 do cos[i] = coroutine.wrap(function() while true do
    local s = 0 for k = 1, 20 do s = s + k end coroutine.yield(s) end end) end
  for r = 1, 10 do for i = 1, 20 do cos[i]() end end
end

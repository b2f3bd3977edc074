-- SPDX-License-Identifier: BSD-2-Clause
local pcall, xpcall, error, traceback = pcall, xpcall, error, debug.traceback

local function fine(x)
  return (x or 0) + 1 -- before 5.2, xpcall() hands on no arguments
end

local function fails(x)
  error("no " .. (x or 0) % 9) --> error
end

local function throws(x)
  error({ code = x }) --> error
end

local function index_nil(x)
  local t
  return t.field
end

--* pcall > fine, fails, throws, index_nil, inner_pcall
--* xpcall > fails, fine

local function good(n)
  local ok, x = true, 0
  for i = 1, n do
    ok, x = pcall(fine, x) --> pcall
  end
  return x
end

local function bad(n)
  for i = 1, n do
    pcall(fails, i) --> pcall
    pcall(throws, i) --> pcall
    pcall(index_nil, i) --> pcall
  end
end

local function handler(e) --* error > handler
  return traceback(e, 1) --* error > debug.traceback --> debug.traceback
end

local function handled(n)
  for i = 1, n do
    xpcall(fails, handler, i) --> xpcall
    xpcall(fine, handler, i) --> xpcall
  end
end

local function inner_pcall(x)
  local ok = pcall(fails, x) --> pcall
  return ok
end

local function nested(n)
  for i = 1, n do
    pcall(inner_pcall, i) --> pcall
  end
end

local function asserts(n)
  local x = 0
  for i = 1, n do
    x = x + assert(i, "never") --> assert
    local ok, e = pcall(assert, false, "always") --> pcall
    x = x + #e
  end
  return x
end
--* pcall > assert

return { "good", good, "bad", bad, "handled", handled, "nested", nested, "asserts", asserts }

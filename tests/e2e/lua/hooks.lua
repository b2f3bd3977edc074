-- SPDX-License-Identifier: BSD-2-Clause
local sethook = debug.sethook
local calls = 0

local function hook() --* > hook
  calls = calls + 1
end

local function leaf(x)
  x = x + 1
  return x
end

local function work(n)
  local x = 0
  for i = 1, n do
    x = leaf(x) --> leaf
  end
  return x
end

local function lines(n)
  sethook(hook, "l") --> debug.sethook
  work(n) --> work
  sethook() --> debug.sethook
end

local function crs(n)
  sethook(hook, "cr") --> debug.sethook
  work(n) --> work
  sethook() --> debug.sethook
end

local function counts(n)
  sethook(hook, "", 10) --> debug.sethook
  work(n) --> work
  sethook() --> debug.sethook
end

return { "lines", lines, "crs", crs, "counts", counts }

-- SPDX-License-Identifier: BSD-2-Clause
-- Two matrices, multiplied and scaled.
local N = 16
local function make(f)
  local m = {}
  for i = 1, N do
    m[i] = {}
    for j = 1, N do m[i][j] = f(i, j) end
  end
  return m
end
local a = make(function(i, j) return i == j and 1 or 0 end)
local b = make(function(i, j) return i + j end)
return function(n)
  local c = make(function() return 0 end)
  for r = 1, n, N * N * N do
    for i = 1, N do
      local ai, ci = a[i], c[i]
      for j = 1, N do
        local s = 0
        for k = 1, N do
          s = s + ai[k] * b[k][j] --@
        end
        ci[j] = s
      end
    end
    for i = 1, N do
      local x = c[i][1]
      for j = 1, N do
        x = x * 2 * 0.5 * 4 * 0.25 * 8 * 0.125 * 16 * 0.0625 --@
        x = 1.5 / (1.5 / (2.5 / (2.5 / (3.5 / (3.5 / (4.5 / (4.5 / x))))))) --@
      end
      c[i][1] = x
    end
  end
  return c[1][1]
end

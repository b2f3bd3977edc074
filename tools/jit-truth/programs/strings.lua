-- SPDX-License-Identifier: BSD-2-Clause
-- Functions of the string library, one a line.
local format, rep, byte, find = string.format, string.rep, string.byte, string.find
return function(n)
  local s = 0
  for i = 1, n, 20 do
    local a = i % 64
    s = s + #format("%d:%5.2f", a, a) --@
    s = s + #rep("ab", a) --@
    s = s + find("the quick brown fox jumps over the lazy dog", "z[yY]") --@
    for j = 1, 8 do
      s = s + byte("abcdefgh", j) --@
    end
    local t = "k" .. a .. "v"
    s = s + #t
  end
  return s
end

-- SPDX-License-Identifier: BSD-2-Clause
-- usage: luajit protos.lua FILE...
-- For each function of the files: FILE, the line of its definition, and the lines it has bytecode on.
local util = require("jit.util")

local function walk(file, f)
  local lines, seen = {}, {}
  for pc = 0, 1e6 do
    if not util.funcbc(f, pc) then break end
    local line = util.funcinfo(f, pc).currentline
    if not seen[line] then lines[#lines + 1], seen[line] = line, true end
  end
  print(file, util.funcinfo(f).linedefined, table.concat(lines, " "))
  for i = -1, -1e6, -1 do
    local k = util.funck(f, i)
    if not k then break end
    if type(k) == "proto" then walk(file, k) end
  end
end

for _, file in ipairs(arg) do
  walk(file, assert(loadfile(file)))
end

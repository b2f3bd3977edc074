-- SPDX-License-Identifier: BSD-2-Clause
-- A process that comes and goes. arg: its chunks' name, CPU seconds, a seed for the names of its variables; "more": makes new
-- functions without end. Prints the CPU time that it used.
local name, seconds, seed, more = arg[1], tonumber(arg[2]), arg[3], arg[4]
local load = loadstring or load

local function functions(seed)
  local parts = {"local f = {} "}
  for i = 1, 20 do
    parts[#parts + 1] = ("f[%d] = function(n) local w%s_%d = 0 for i = 1, n do w%s_%d = w%s_%d + i %% %d end return w%s_%d end ")
      :format(i, seed, i, seed, i, seed, i, i + 1, seed, i)
  end
  parts[#parts + 1] = "return f"
  return load(table.concat(parts), "@" .. name)()
end

local f, turns = functions(seed), 0
while os.clock() < seconds do
  for i = 1, 20 do
    f[i](100)
  end
  turns = turns + 1
  if more and turns % 200 == 0 then
    f = functions(seed .. "_" .. turns)
  end
end
io.write(("%.6f\n"):format(os.clock()))

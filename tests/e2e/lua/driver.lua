-- SPDX-License-Identifier: BSD-2-Clause
-- usage: luajit driver.lua WORKLOAD.lua SECONDS [nowait]
-- Runs the sections of a workload in turn for SECONDS of CPU time; then prints, as JSON, how much
-- CPU time each section took, and each line that calls lap(), and what the workload put into `known`.
-- A workload returns { name, function, name, function, ... }; each function takes the size of its
-- work, which is adapted to take a millisecond or three, never the same, lest the timer fall in
-- step with it.
-- Comments in workloads say what is legal: "--> f, g": what this line may call; "--= name": the
-- line that lap("name") measures; "--* f > g": f may call g from any line, "--* > g": anybody may.
-- "--~ maybe", "--~ always": this function may be, or always is, entered by a tail call; "--@ s":
-- runs in section s only.
local path, seconds, nowait = arg[1], tonumber(arg[2]), arg[3]
local clock = os.clock
local spent, size, random = {}, {}, 1
local byline = {}
local since = 0
known = {}

function mark()
  since = clock() --> os.clock
end

function lap(name)
  local now = clock() --> os.clock
  byline[name] = (byline[name] or 0) + now - since
  since = clock() --> os.clock
end

local sections = assert(loadfile(path))()

local function run(name, f, i)
  local n = size[i] or 1
  local t = clock() --> os.clock
  f(n) --> *
  t = clock() - t --> os.clock
  spent[name] = (spent[name] or 0) + t
  random = (random * 16807) % 2147483647
  local want = 1e-3 + 2e-3 * random / 2147483647
  n = n * want / t
  if n > size[i] * 4 then n = size[i] * 4 end
  if n < size[i] / 4 then n = size[i] / 4 end
  size[i] = n < 1 and 1 or n - n % 1
end

local function rounds(start)
  while clock() - start < seconds do --> os.clock
    for i = 1, #sections, 2 do
      run(sections[i], sections[i + 1], i) --> run
    end
  end
end

for i = 1, #sections, 2 do size[i] = 1 end
if nowait ~= "nowait" then
  print("ready")
  io.stdout:flush()
  io.read() --> io.read
end
local start = clock() --> os.clock
rounds(start) --> rounds
local total = clock() - start

local function json(t)
  local out = {}
  for k, v in pairs(t) do out[#out + 1] = ("%q:%.6f"):format(k, v) end --> string.format, pairs, next
  return "{" .. table.concat(out, ",") .. "}" --> table.concat
end
print('{"total":' .. total .. ',"sections":' .. json(spent) .. ',"lines":' .. json(byline) .. ',"known":' .. json(known) .. "}") --> json, print

-- SPDX-License-Identifier: BSD-2-Clause
-- Runs a program under a line hook in Lua; then prints "LINE HITS" of its file, by line.
local file, hits = "@" .. arg[1], {}
local getinfo, sethook, create = debug.getinfo, debug.sethook, coroutine.create

local function hook(event, line)
  if event == "line" and getinfo(2, "S").source == file then hits[line] = (hits[line] or 0) + 1 end
end

-- PUC Lua has a hook for each coroutine.
if not jit then
  function coroutine.create(f)
    local co = create(f)
    sethook(co, hook, "l")
    return co
  end
  function coroutine.wrap(f)
    local co = coroutine.create(f)
    return function(...)
      local function pass(ok, ...)
        if not ok then error((...), 0) end
        return ...
      end
      return pass(coroutine.resume(co, ...))
    end
  end
end
local main = assert(loadfile(arg[1]))
-- LuaJIT reports lines more often when it reports calls.
sethook(hook, jit and "crl" or "l")
main()
sethook()
local lines = {}
for line in pairs(hits) do lines[#lines + 1] = line end
table.sort(lines)
for _, line in ipairs(lines) do print(line, hits[line]) end

-- SPDX-License-Identifier: BSD-2-Clause
-- usage: luajit jitp.lua P_LUA PID MILLISECONDS SAVED OUTPUT poll|wait|direct, option strings on stdin
-- Runs LuaJIT's own jit/p.lua over luabpf.profile, once for each option string, all on the samples of one recording: each
-- writes its report to OUTPUT.N, N from 1 on. SAVED: the recording as pprof. direct: of one option string, with nothing between.
local profile = require("luabpf.profile")
local p_lua, pid, ms, saved, output, how = arg[1], tonumber(arg[2]), tonumber(arg[3]), arg[4], arg[5], arg[6]
package.loaded["jit.profile"] = profile
package.loaded["jit.zone"] = require("luabpf.zone")

local callbacks, begun, p = {}, false, {}
if how ~= "direct" then
  package.loaded["jit.profile"] = {
    start = function(mode, callback)
      assert(mode:match("^[fl]?i?%d*$"), mode)
      callbacks[#callbacks + 1] = callback
    end,
    stop = profile.stop,
    dumpstack = profile.dumpstack,
  }
end
profile.attach(pid)
local n = 0
for options in io.lines() do
  n = n + 1
  p[n] = assert(loadfile(p_lua))()
  p[n].start(options, output .. "." .. n)
end
if how ~= "direct" then
  profile.start("i1", function(...)
    for i = 1, #callbacks do callbacks[i](...) end
  end)
end
for _ = 1, ms / 50 do profile[how == "poll" and "poll" or "wait"](50) end
profile.stop()
for i = 1, n do
  local ok, err = pcall(p[i].stop)
  io.write(ok and "" or err, "\n")
end
profile.write(saved)

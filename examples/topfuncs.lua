-- SPDX-License-Identifier: BSD-2-Clause
-- The functions of running processes that take most time: luajit topfuncs.lua PID[,PID...] [SECONDS]
local profile = require("luabpf.profile")
local pids = {}
for pid in (arg[1] or ""):gmatch("%d+") do pids[#pids + 1] = tonumber(pid) end

local samples, total, compiled = {}, 0, {}

local function callback(thread, n, vmstate)
  local name = profile.dumpstack(thread, "F", 1)
  total = total + n
  samples[name] = (samples[name] or 0) + n
  if vmstate == "N" then compiled[name] = (compiled[name] or 0) + n end
end

profile.attach(pids)
profile.start("i1", callback)
profile.wait((tonumber(arg[2]) or 5) * 1000) -- or until they end
profile.stop()

local names = {}
for name in pairs(samples) do names[#names + 1] = name end
table.sort(names, function(a, b) return samples[a] > samples[b] end)
for i = 1, math.min(#names, 20) do
  local name, n = names[i], samples[names[i]]
  print(("%5.1f %%  %3.0f %% compiled  %s"):format(100 * n / total, 100 * (compiled[name] or 0) / n, name))
end
for reason, n in pairs(profile.losses()) do
  print(("%d samples: %s"):format(n, reason))
end

-- SPDX-License-Identifier: BSD-2-Clause
-- usage: jitprofile.lua CASE PID. Uses luabpf.profile as a program would; fails by an error. Prints "ok".
local profile = require("luabpf.profile")
local case, pid = arg[1], tonumber(arg[2])
local cases, seen, total = {}, {}, 0

local function fails(sentence, f, ...)
  local ok, err = pcall(f, ...)
  assert(not ok and tostring(err):find(sentence, 1, true), tostring(err))
end
local function poll_until(test)
  repeat assert(profile.poll(20)) until test()
end

-- LuaJIT's documentation: a profiler of one's own is started, dumps stacks into a table, and is stopped.
function cases.documented()
  profile.attach(pid)
  profile.start("li1", function(thread, samples, vmstate)
    assert(vmstate:match("^[NICGJ]$"))
    local lines = profile.dumpstack(thread, "l\n", 10)
    local stack = profile.dumpstack(thread, "lZ;", -100)
    assert(stack:gsub(";.*", "") == (select(2, lines:gsub("\n", "")) < 10 and lines:match("([^\n]*)\n$") or stack:gsub(";.*", "")))
    assert(profile.dumpstack("pF", 1) == profile.dumpstack(thread, "pF", 1)) -- the thread may be absent
    seen[stack] = (seen[stack] or 0) + samples
    total = total + samples
  end)
  poll_until(function() return total >= 30 end)
  profile.stop()
  local sum = 0
  for _, n in pairs(seen) do sum = sum + n end
  assert(sum == total)
  profile.stop()
  assert(profile.poll(0) == false)
  local sampled
  profile.start(function() sampled = true end) -- the mode may be absent
  poll_until(function() return sampled end)
  profile.stop()
end

function cases.label()
  local coroutines = {}
  profile.attach({ pid }, { coroutines = true, zones = true, follow = false })
  profile.start("i1", function(thread, n)
    assert(type(thread) == "userdata" and profile.label("pid") == pid and profile.label("tid") == pid)
    assert(profile.label("comm") and not profile.label("nothing") and profile.label("vm_id"):match("^0x%x+$"))
    local c = profile.label("coroutine")
    assert(coroutines[thread] == nil or coroutines[thread] == c)
    coroutines[thread] = c
    seen[profile.label("zone") or "none"] = true
    total = total + n
  end)
  poll_until(function() return total >= 100 and seen.parse and seen.none end)
  local n = 0
  for _ in pairs(coroutines) do n = n + 1 end
  assert(n == 2, n)
  assert(profile.label("zone") == nil and profile.fd() > 2)
end

-- An error ends that poll() only: all samples but those of the callbacks that failed are counted.
function cases.errors()
  local failed, thrown = 0, setmetatable({}, { __tostring = function() return "thrown" end })
  profile.attach(pid)
  profile.start("i1", function(_, n)
    total = total + n
    if failed < 5 then
      failed = failed + 1
      error(failed == 1 and thrown or "of the callback " .. failed)
    end
    profile.dumpstack("f", 1)
  end)
  while failed < 5 do
    local before = failed
    local ok, err = pcall(profile.poll, 20)
    assert(ok == (before == failed))
    assert(ok or (before == 0 and err == thrown) or err:find("of the callback " .. failed, 1, true), err)
  end
  poll_until(function() return total >= 50 end)
  profile.stop()
  assert(not profile.losses()["not-delivered"])
  -- in stop(): the rest is a loss
  profile.start("i1", function() error("at the end") end)
  for _ = 1, 8 do profile.wait(50) end
  fails("at the end", profile.stop)
  profile.stop()
end

function cases.within()
  local said = {}
  profile.attach(pid)
  local function try()
    fails("start(): not within the callback", profile.start, "", try)
    fails("poll(): not within the callback", profile.poll, 1)
    fails("wait(): not within the callback", profile.wait, 1)
    said[#said + 1] = pcall(coroutine.yield)
    total = total + 1
    profile.stop()
    profile.stop()
  end
  profile.start("i1", try)
  while profile.poll(50) do end
  assert(total == 1 and said[1] == false)
  assert(profile.poll(50) == false)
  profile.stop()
  assert(total == 1)
end

function cases.wrong()
  fails("call attach() first", profile.start, "", print)
  fails("call start() first", profile.new().poll, 1)
  fails("call start() first", profile.new().losses)
  fails("a process, a table of processes or \"all\" expected", profile.attach, "none")
  fails("outside of the callback", profile.dumpstack, "f", 1)
  fails("string expected", profile.dumpstack)
  assert(profile.stop() == nil)
  for _, what in ipairs({ 0, -1, 2 ^ 40, pid + 0.5, 0 / 0, { pid, "x" }, { pid, 0.5 } }) do
    fails("is not the number of a process", profile.attach, what)
  end
  fails("x is not the number of a process", profile.attach, { "x" })
  fails("exes is no option", profile.attach, "all", { exes = "nginx" })
  fails("the names of options are strings", profile.attach, pid, { "follow" })
  fails("call attach() first", profile.start, "", print)
  profile.attach(4194303)
  fails("no such process", profile.start, "", print)
  local changed = { pid }
  profile.attach(changed)
  changed[2] = "x"
  fails("is not the number of a process", profile.start, "", print)
  profile.attach({})
  fails("no process to record", profile.start, "", print)
  profile.attach(pid, { comm = "x" })
  fails("single processes cannot be narrowed", profile.start, "", print)
  profile.attach("all", { user = {} , comm = { {} } })
  fails("option comm: a string", profile.start, "", print)
  fails("not begun", profile.poll, 1)
  fails("the start has failed", profile.fd)
  profile.attach(pid)
  fails("function expected", profile.start, "")
  profile.start("i1", print)
  fails("/nowhere/x: cannot be written", profile.write, "/nowhere/x")
  profile.start("i1", function() end) -- anew
  profile.stop()
end

function cases.two()
  local other, n = profile.new(), 0
  profile.attach(pid)
  other.attach("all", { comm = { (io.open("/proc/" .. pid .. "/comm"):read("*l")) }, exe = "*" })
  profile.start("i1", function(_, k) total = total + k if other then fails("outside", other.dumpstack, "f", 1) end end)
  other.start("i1", function(_, k)
    if other.label("pid") == pid then n = n + k assert(other.dumpstack("f", 1) ~= "") end
  end)
  poll_until(function() other.poll(20) return total >= 30 and n >= 30 end)
  other = nil
  collectgarbage() collectgarbage()
  profile.stop()
end

-- The process that is profiled is the one that profiles.
function cases.itself()
  local me = tonumber(io.open("/proc/self/stat"):read("*l"):match("^%d+"))
  local function work(n) local s = 0 for i = 1, n do s = s + i % 7 end return s end
  profile.attach(me)
  profile.start("i1", function(thread, n)
    local f = profile.dumpstack(thread, "F", 1)
    seen[f] = (seen[f] or 0) + n
    total = total + n
  end)
  repeat work(100000) until not profile.poll(0) or total >= 100
  profile.stop()
  assert(seen["jitprofile.lua:work"] > total / 2, seen["jitprofile.lua:work"])
end

-- The recording ends with its target; the file is not read before.
function cases.ends()
  local zone = require("luabpf.zone")
  profile.attach(pid)
  profile.start("i1", function(_, n) total = total + n seen[zone:get() or "none"] = true end)
  io.write("begun\n") io.flush()
  while profile.poll(10000) do end
  assert(total > 20 and seen.parse)
  assert(profile.wait(1) == false)
  profile.stop()
end

-- Never stopped: the collector or the end of the state does it.
function cases.left()
  profile.attach(pid)
  profile.start("i1", function(_, n) total = total + n end)
  poll_until(function() return total > 0 end)
end

assert(cases[case], case)()
print("ok")

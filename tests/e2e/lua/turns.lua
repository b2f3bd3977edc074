-- SPDX-License-Identifier: BSD-2-Clause
-- usage: turns.lua ROUNDS SECONDS CGROUP OTHER UID COMM
-- After a line on stdin it alternates between matching and differing in name, user or cgroup. In each turn it
-- spends SECONDS of CPU time in a chunk named after the turn. Prints the CPU time of each chunk. Needs root.
local ffi = require("ffi")
ffi.cdef [[
int prctl(int, const char *, long, long, long);
int setfsuid(unsigned);
]]
local rounds, seconds, cgroup, other, uid, comm = tonumber(arg[1]), tonumber(arg[2]), arg[3], arg[4], tonumber(arg[5]), arg[6]
local took = {}

local function work(name)
  local chunk = loadstring("local x = 0 for i = 1, 1e4 do x = x + i % 7 end", "=" .. name)
  local start = os.clock()
  repeat chunk() until os.clock() - start >= seconds
  took[name] = (took[name] or 0) + os.clock() - start
end

local function name(text) ffi.C.prctl(15, text, 0, 0, 0) end
local function move(path) local f = assert(io.open(path .. "/cgroup.procs", "w")) f:write("0") f:close() end

move(cgroup) name(comm) ffi.C.setfsuid(uid)
print("ready") io.stdout:flush() io.read()
for i = 1, rounds do
  work("wanted_first")
  name("other") work("unwanted_name") name(comm)
  work("wanted_name")
  ffi.C.setfsuid(0) work("unwanted_user") move(other) ffi.C.setfsuid(uid) work("unwanted_cgroup")
  ffi.C.setfsuid(0) move(cgroup) ffi.C.setfsuid(uid) work("wanted_cgroup")
end
for chunk, t in pairs(took) do print(chunk, t) end

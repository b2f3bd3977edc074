-- SPDX-License-Identifier: BSD-2-Clause
-- What Neovim runs: says how much CPU time each part has taken, and ends.  nvim -u NONE --headless -c "luafile neovim.lua"
local parts = require("parts")
local clock, api, fn, measure, turns = os.clock, vim.api, vim.fn, parts.measure, parts.turns
local timer, ended = vim.loop.new_timer(), false

local function buffer(n)
  for i = 1, n do api.nvim_buf_set_lines(0, 0, -1, false, { "a", "b", "c" }) end -- buffer
end

local function call(n)
  for i = 1, n do fn.substitute("a line of text", "e", "E", "g") end -- call
end

local function wave(n)
  local s = 0
  for i = 1, n do s = s + i % 3 end -- wave
  return s
end

-- In a callback of libuv's, from Neovim's event loop.
local function tick()
  measure("wave", wave, turns(100000))
  ended = true
end

local function busy()
  parts.begin()
  measure("spin", parts.spin, turns(100000))
  measure("buffer", buffer, turns(60))
  measure("call", call, turns(100))
  measure("thread", coroutine.wrap(parts.thread), turns(100000))
  ended = false
  timer:start(0, 0, tick)
  vim.wait(1000, function() return ended end, 1) -- loop
end

io.stdout:write("ready\n")
io.stdout:flush()
io.stdin:read("*l")
local start, seconds = clock(), tonumber(os.getenv("SECONDS"))
while clock() - start < seconds do busy() end
io.stdout:write(parts.tell(), "\n")
io.stdout:flush()
vim.cmd("qa!")

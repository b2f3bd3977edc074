-- SPDX-License-Identifier: BSD-2-Clause
-- What Neovim runs: says how much CPU time each part has taken, and ends.  nvim -u NONE --headless -c "luafile neovim.lua"
local clock, api, fn = os.clock, vim.api, vim.fn
local took = { spin = 0, buffer = 0, call = 0, thread = 0, timer = 0 }
local seconds = tonumber(os.getenv("SECONDS"))
local clock_hand, round, ended = vim.loop.new_timer(), 0, false

local function spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end -- spin
  return s
end

local function buffer(n)
  for i = 1, n do api.nvim_buf_set_lines(0, 0, -1, false, { "a", "b", "c" }) end -- buffer
end

local function call(n)
  for i = 1, n do fn.substitute("a line of text", "e", "E", "g") end -- call
end

local function thread(n)
  local s = 0
  for i = 1, n do s = s + i % 5 end -- thread
  coroutine.yield(s)
end

local function timer(n)
  local s = 0
  for i = 1, n do s = s + i % 3 end -- timer
  return s
end

local function measure(name, f, n)
  local start = clock()
  f(n)
  took[name] = took[name] + clock() - start
end

-- In a callback of libuv's, from Neovim's event loop.
local function tick()
  measure("timer", timer, 100000 + round * 7919 % 100000)
  ended = true
end

local function busy()
  round = round + 1
  measure("spin", spin, 100000 + round * 7919 % 100000)
  measure("buffer", buffer, 60 + round * 7919 % 60)
  measure("call", call, 100 + round * 7919 % 100)
  measure("thread", coroutine.wrap(thread), 100000 + round * 7919 % 100000)
  ended = false
  clock_hand:start(0, 0, tick)
  vim.wait(1000, function() return ended end, 1) -- loop
end

io.stdout:write("ready\n")
io.stdout:flush()
io.stdin:read("*l")
local start = clock()
while clock() - start < seconds do busy() end
io.stdout:write(('{"spin":%.6f,"buffer":%.6f,"call":%.6f,"thread":%.6f,"timer":%.6f}\n'):format(took.spin, took.buffer,
                took.call, took.thread, took.timer))
io.stdout:flush()
vim.cmd("qa!")

-- SPDX-License-Identifier: BSD-2-Clause
-- What nginx serves (nginx.conf): each request works for a while, and says how much CPU time each part has taken in this
-- worker since it began.
local parts = require("parts")
local service = {}
local clock, measure, turns = os.clock, parts.measure, parts.turns
local find, spawn, wait, sleep = ngx.re.find, ngx.thread.spawn, ngx.thread.wait, ngx.sleep

local function match(n)
  local s = 0
  for i = 1, n do s = s + find("a line of some text: 42", "\\d+", "jo") end -- match
  return s
end

-- A light thread of nginx's own scheduler: a coroutine that it resumes, not the one that made it.
local function light()
  measure("thread", parts.thread, turns(60000))
  sleep(0)
  measure("thread", parts.thread, turns(60000))
end

local function access(n)
  local s = 0
  for i = 1, n do s = s + i % 3 end -- access
  return s
end

-- Runs in a phase of its own, before the content.
function service.check()
  parts.begin()
  for _ = 1, 4 do measure("access", access, turns(200000)) end
end

function service.busy()
  local start = clock()
  while clock() - start < 0.03 do
    parts.begin()
    measure("spin", parts.spin, turns(100000))
    measure("text", parts.text, turns(1000))
    measure("match", match, turns(1000))
    assert(wait(spawn(light)))
  end
  ngx.say(parts.tell({ pid = ngx.worker.pid() }))
end

return service

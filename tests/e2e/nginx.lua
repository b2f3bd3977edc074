-- SPDX-License-Identifier: BSD-2-Clause
-- What nginx serves (nginx.conf): each request works for a while, and says how much CPU time each part has taken in this
-- worker since it began.
local service = {}
local clock, format = os.clock, string.format
local find, spawn, wait, sleep = ngx.re.find, ngx.thread.spawn, ngx.thread.wait, ngx.sleep
local took = { spin = 0, text = 0, match = 0, thread = 0 }
local round = 0

local function spin(n)
  local s = 0
  for i = 1, n do s = s + i % 7 end -- spin
  return s
end

local function text(n)
  local s
  for i = 1, n do s = format("%d:%s", i, "text") end -- text
  return s
end

local function match(n)
  local s = 0
  for i = 1, n do s = s + find("a line of some text: 42", "\\d+", "jo") end -- match
  return s
end

local function thread(n)
  local s = 0
  for i = 1, n do s = s + i % 5 end -- thread
  return s
end

local function measure(name, f, n)
  local start = clock()
  f(n)
  took[name] = took[name] + clock() - start
end

-- A light thread of nginx's own scheduler: a coroutine that it resumes, not the one that made it.
local function light()
  measure("thread", thread, 60000 + round * 7919 % 60000)
  sleep(0)
  measure("thread", thread, 60000 + round * 7919 % 60000)
end

function service.busy()
  local start = clock()
  while clock() - start < 0.03 do
    round = round + 1
    measure("spin", spin, 100000 + round * 7919 % 100000)
    measure("text", text, 1000 + round * 7919 % 1000)
    measure("match", match, 1000 + round * 7919 % 1000)
    assert(wait(spawn(light)))
  end
  ngx.say(format('{"pid":%d,"spin":%.6f,"text":%.6f,"match":%.6f,"thread":%.6f}', ngx.worker.pid(), took.spin, took.text,
                 took.match, took.thread))
end

return service

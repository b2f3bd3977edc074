-- SPDX-License-Identifier: BSD-2-Clause
-- The demo's workload: a small "service" that parses, sorts, computes and formats in a loop, with a
-- coroutine that produces its input. Runs for as many seconds as its argument says, or until killed.

local rounds_until = os.clock() + (tonumber(arg and arg[1]) or math.huge)

-- Arithmetic in a loop: a trace, "Compiled".
local function mandelbrot(size)
  local inside = 0
  for y = 1, size do
    local ci = 2 * y / size - 1
    for x = 1, size do
      local cr, zr, zi, n = 2 * x / size - 1.5, 0, 0, 0
      while n < 50 and zr * zr + zi * zi < 4 do
        zr, zi, n = zr * zr - zi * zi + cr, 2 * zr * zi + ci, n + 1
      end
      if n == 50 then inside = inside + 1 end
    end
  end
  return inside
end

-- Patterns are not compiled: string.gmatch runs in the interpreter.
local function parse(text)
  local words = {}
  for key, value in text:gmatch("(%w+)=(%w+)") do
    words[#words + 1] = { key = key, value = value }
  end
  return words
end

-- table.sort calls back into Lua from C.
local function rank(words)
  table.sort(words, function(a, b) return a.key < b.key end)
  return words
end

-- Many short strings: the garbage collector has work.
local function render(words)
  local out = {}
  for i, word in ipairs(words) do
    out[i] = string.format("%s: %s", word.key, word.value:upper():rep(3))
  end
  return table.concat(out, "\n")
end

local requests = coroutine.wrap(function()
  local n = 0
  while true do
    local parts = {}
    for i = 1, 40 do
      n = (n * 1103515245 + 12345) % 2147483648
      parts[i] = ("k%x=v%d"):format(n, i)
    end
    coroutine.yield(table.concat(parts, "&"))
  end
end)

local function handle(request)
  return #render(rank(parse(request)))
end

local function serve()
  for _ = 1, 100 do handle(requests()) end
  return mandelbrot(120)
end

while os.clock() < rounds_until do serve() end

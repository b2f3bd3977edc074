-- SPDX-License-Identifier: BSD-2-Clause
--
-- Plays samples (the text form of render.c) through the real jit/p.lua:
--
--   luajit replay.lua P_LUA SAMPLES    for each option string on stdin: "LENGTH\n" and the report; when p.lua
--                                      itself fails, "!LENGTH\n" and what it had written so far
--   luajit replay.lua --live           the dumpstack() below against the real one, on a script that runs
--
-- jit/p.lua gets a stub of jit.profile whose dumpstack() formats the written frames. Its string.format filters the
-- strings that it is given, as luabpf's reports do.

-- p.lua splits each stack by this pattern. It matches from the first character on or not at all: where it does not, trying
-- from each of the following ones would take most of the time.
local match = string.match
function string.match(s, pattern, ...)
  return match(s, pattern == "(.-) [<>] (.*)" and "^(.-) [<>] (.*)" or pattern, ...)
end

local function unescape(s)
  if s == "~" then return nil end
  return (s:gsub("%%(%x%x)", function(x) return string.char(tonumber(x, 16)) end))
end

-- Where luabpf's names differ from LuaJIT's on purpose (out/jitp.h); false: all is LuaJIT's.
local ours = true
local folded = false -- rows are folded stacks

local function source(text)
  local first = text:match("^[^\r\n]*")
  if #first > 40 then
    local n = 40
    while n > 0 and first:byte(n + 1) >= 0x80 and first:byte(n + 1) < 0xc0 do n = n - 1 end
    first = first:sub(1, n)
  end
  if #first == #text then return '[string "' .. text .. '"]' end
  local hash = 2166136261LL
  for i = 1, #text do
    hash = bit.band(bit.bxor(hash, text:byte(i)) * 16777619LL, 0xffffffffLL)
  end
  return ('[string "%s..." %s]'):format(first, bit.tohex(tonumber(hash), 8))
end

local function chunkname(f, strip)
  local name = f.chunk or "=?"
  if f.firstline == -1 then return "[builtin:" .. name .. "]", true end
  local first = name:sub(1, 1)
  if first ~= "=" and first ~= "@" then return ours and source(name) or "[string]" end
  local whole = name
  name = name:sub(2)
  if strip then name = name:match("([^/\\]*)$") end
  if ours and name == "" then name = #whole > 1 and whole:sub(2) or whole end
  return name
end

local function pointer(text) -- text: 0x and hex digits, as written in SAMPLES
  local digits = text:sub(3):gsub("^0+", "")
  if digits == "" then return "NULL" end
  if #digits < 8 then digits = ("0"):rep(8 - #digits) .. digits
  elseif #digits % 2 == 1 then digits = "0" .. digits end
  return "0x" .. digits
end

local function level_text(f, what, strip)
  if f.kind == "X" then return "[cut]" end
  if what ~= "l" and f.callname then
    if what == "F" and f.kind == "L" and f.firstline ~= -1 then
      return chunkname(f, strip) .. ":" .. f.callname
    end
    return f.callname
  end
  if f.kind == "B" then return "[builtin#" .. tonumber(f.addr) .. "]" end
  if ours and f.kind == "C" and f.chunk and not f.symbol then
    local offset = f.addr:sub(3):gsub("^0+", "")
    return f.chunk .. (offset == "" and "" or "+0x" .. offset)
  end
  if f.kind == "C" then return f.symbol or "@" .. pointer(f.addr) end
  local name, builtin = chunkname(f, strip)
  if builtin then return name end
  local line = what == "l" and f.line or f.firstline
  if line < 0 then line = f.firstline end
  return name .. ":" .. line .. (f.position and "#" .. f.position or "")
end

-- The same filter as text_put_clean(); valid: as text_put_utf8().
local function clean(s, valid)
  if type(s) ~= "string" then return s end
  local cr = ""
  if not valid and s:sub(-1) == "\r" then s, cr = s:sub(1, -2), "\r" end
  local out, i = {}, 1
  local function hex(c) return ("\\x%02x"):format(c) end
  local patterns = {
    "^[\194-\223][\128-\191]", "^\224[\160-\191][\128-\191]", "^[\225-\236][\128-\191][\128-\191]",
    "^\237[\128-\159][\128-\191]", "^[\238\239][\128-\191][\128-\191]",
    "^\240[\144-\191][\128-\191][\128-\191]", "^[\241-\243][\128-\191][\128-\191][\128-\191]",
    "^\244[\128-\143][\128-\191][\128-\191]",
  }
  while i <= #s do
    local c, seq = s:byte(i), nil
    if c >= 0x80 then
      for _, p in ipairs(patterns) do seq = seq or s:match(p, i) end
    end
    if seq and seq:find("^\194[\128-\159]") then
      out[#out + 1] = hex(194)
      out[#out + 1] = hex(seq:byte(2))
      i = i + 2
    elseif seq then
      out[#out + 1] = seq
      i = i + #seq
    else
      local plain = not valid and (c >= 0xa0 or c == 9) or (c >= 0x20 and c < 0x7f)
      out[#out + 1] = plain and string.char(c) or hex(c)
      i = i + 1
    end
  end
  return table.concat(out) .. cr
end

-- The same as folded_put_frame().
local function folded_frame(s)
  local function escape(c) return ("\\x%02x"):format(c:byte()) end
  if s == "" then return "\\x00" end
  local head, number = s:match("^(.*) ([%d.]+)$")
  local before, at = head or s, head and escape(" ") .. number or ""
  if not head then before, at = s:gsub(" $", ""), s:match(" $") and escape(" ") or "" end
  before = before:gsub("\\(x%x%x)", function(rest) return "\0" .. rest end):gsub("[;\t\r]", escape)
  before = before:gsub("^ ", function() return escape(" ") end):gsub("%z", function() return "\\x5c" end)
  return clean(before, true) .. at
end


-- The frames from the topmost Lua function on, if there is one.
local function from_lua(frames)
  for i = 1, #frames do
    if frames[i].kind == "L" then return { unpack(frames, i) } end
  end
  return frames
end

-- frames: leaf first. Same signature and meaning as jit.profile.dumpstack().
local function dumpstack(frames, fmt, depth)
  local strip = true
  if fmt:sub(1, 1) == "p" then strip = false; fmt = fmt:sub(2) end
  local what, rest = fmt:match("^([fFl])(.*)$")
  local sep = rest:match("^Z(.*)$") or ""
  local t = {}
  local from, to, step = 1, math.min(depth, #frames), 1
  if depth < 0 then from, to, step = math.min(-depth, #frames), 1, -1 end
  if sep == ";" and #frames > 100 then t[1] = "[cut]" end
  for i = from, to, step do
    local text = level_text(frames[i], what, strip)
    t[#t + 1] = folded and folded_frame(text) or text
  end
  if folded and #frames == 0 then return "[no frame]" end
  return table.concat(t, sep)
end

local function read_samples(path)
  local frames, rows, ffnames = {}, {}, {}
  for line in io.lines(path) do
    local w = {}
    for x in (line .. " "):gmatch("([^ ]*) ") do w[#w + 1] = x end
    if w[1] == "F" then
      local f = {
        kind = w[2], callname = unescape(w[3]), chunk = unescape(w[5]), symbol = unescape(w[6]),
        addr = w[7], firstline = tonumber(w[8]), line = tonumber(w[9]), position = unescape(w[10]),
      }
      frames[#frames + 1] = f
      if f.kind == "B" then ffnames[tonumber(f.addr)] = f.symbol end
    elseif w[1] == "R" then
      local row = { state = w[2], count = tonumber(w[6]), zone = unescape(w[7]), stack = {} }
      for i = 8, #w do row.stack[#row.stack + 1] = frames[tonumber(w[i]) + 1] end
      rows[#rows + 1] = row
    end
  end
  return rows, ffnames
end

local function report(p_lua, rows, ffnames, options)
  local written = {}
  local file = {
    write = function(_, ...) for _, s in ipairs { ... } do written[#written + 1] = s end end,
    close = function() end,
  }
  local callback, zone
  local stubs = {
    jit = jit,
    ["jit.vmdef"] = { ffnames = ffnames },
    ["jit.zone"] = {
      get = function() -- G alone makes no stacks of zones
        return zone and folded and options:find("[fFl]") and folded_frame(zone) or zone
      end,
    },
    ["jit.profile"] = {
      start = function(_, cb) callback = cb end,
      stop = function() end,
      dumpstack = function(frames, fmt, depth)
        -- "pl" is what annotation asks for: jit.p's samples always have a Lua function on top
        return dumpstack(fmt == "pl" and from_lua(frames) or frames, fmt, depth)
      end,
    },
  }
  local env = setmetatable({
    require = function(name) return assert(stubs[name], name) end,
    newproxy = function() return newproxy(true) end,
    getmetatable = function() return {} end, -- no finalizer: stop() is called
    io = {
      stdout = file,
      open = function(name, mode) if mode == "w" then return file end return io.open(name) end,
    },
    string = setmetatable({
      format = function(fmt, ...)
        local args = { ... }
        for i = 1, #args do args[i] = clean(args[i]) end
        return string.format(fmt, unpack(args))
      end,
    }, { __index = string }),
  }, { __index = _G })
  folded = options:find("G", 1, true) and not options:find("[aA]")
  local p = setfenv(assert(loadfile(p_lua)), env)()
  p.start(options, "out")
  for _, row in ipairs(rows) do
    zone = row.zone ~= "(none)" and row.zone or nil
    callback(row.stack, row.count, row.state)
  end
  local ok = pcall(p.stop)
  return ok, table.concat(written)
end

-- Frames of a thread, described by the debug interface.
local function describe(th)
  local util, frames = require("jit.util"), {}
  for level = 0, 200 do
    local i = debug.getinfo(th, level, "nSlf")
    if not i then break end
    local u = util.funcinfo(i.func)
    local f = { callname = i.name, chunk = i.source, firstline = i.linedefined, line = i.currentline }
    if i.what ~= "C" or u.proto then f.kind = "L"
    elseif u.ffid and u.ffid > 1 then f.kind = "B"; f.addr = tostring(u.ffid)
    else f.kind = "C"; f.addr = ("0x%x"):format(u.addr) end
    frames[#frames + 1] = f
  end
  return frames
end

local function live()
  ours = false
  local profile = require("jit.profile")
  local formats = { "fZ < ", "FZ < ", "lZ < ", "pfZ > ", "pFZ;", "plZ < ", "pl" }
  local depths = { 0, 1, 2, 5, -1, -2, -5, -100 }
  local n, bad = 0, nil
  profile.start("fi1", function(th)
    local frames = describe(th)
    for _, fmt in ipairs(formats) do
      for _, depth in ipairs(depths) do
        if fmt ~= "pl" or depth == 1 then
          local theirs, ours = profile.dumpstack(th, fmt, depth), dumpstack(frames, fmt, depth)
          if theirs ~= ours then bad = bad or { fmt, depth, theirs, ours } end
        end
      end
    end
    n = n + 1
  end)
  local t = { m = function(self, x) local s = 0; for i = 1, 200 do s = s + math.sin(i * x) end return s end }
  local text = loadstring("local a = ... ; local s = 0; for i = 1, 500 do s = s + a % i end return s")
  local function sorted(k)
    local a = {}
    for i = 1, 100 do a[i] = (i * 7919) % k end
    table.sort(a, function(x, y) return x < y end)
    return table.concat(a, ",", 1, 100)
  end
  local co = coroutine.wrap(function()
    for i = 1, 1e9 do
      t:m(i)
      text(i)
      pcall(sorted, 101)
      ;("x"):rep(100):gsub("x", function(c) return c:upper() end)
      coroutine.yield()
    end
  end)
  local stop = os.clock() + 0.5
  while os.clock() < stop or n < 20 and os.clock() < stop + 10 do co() end
  profile.stop()
  if bad then
    io.stderr:write(("%s %d\nreal: %s\nstub: %s\n"):format(unpack(bad)))
    os.exit(1)
  end
  print(n)
end

if arg[1] == "--live" then
  live()
else
  local rows, ffnames = read_samples(arg[2])
  for options in io.lines() do
    local ok, text = report(arg[1], rows, ffnames, options)
    io.write(ok and "" or "!", #text, "\n", text)
  end
end

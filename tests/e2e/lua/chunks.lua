-- SPDX-License-Identifier: BSD-2-Clause
-- Functions without a file: chunks named by their own text, and bytecode without debug information.
local load = loadstring or load

local text = [[
local n = ...
local function inner(n)
  local s = 0
  for i = 1, n do
    s = s + i % 7
  end
  return s
end
local s = inner(n)
return s]]

-- As luac -s makes it: before 5.3 string.dump() cannot.
local function stripped(source)
  local version = _VERSION:match("5%.%d")
  if version >= "5.3" then return string.dump(assert(load(source)), true) end
  local path = os.tmpname()
  local pipe = io.popen("luac" .. version .. " -s -o " .. path .. " -", "w")
  pipe:write(source)
  pipe:close()
  local file = io.open(path, "rb")
  local code = file:read("*a")
  file:close()
  os.remove(path)
  return code
end

local plain, bare = load(text), assert(load(stripped(text), "=bare"))

local function texts(n)
  for i = 1, n do
    plain(300) --> text
  end
end

local function bares(n)
  for i = 1, n do
    bare(300) --> bare
  end
end
--* text > text
--* bare > bare

return { "texts", texts, "bares", bares }

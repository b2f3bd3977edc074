-- SPDX-License-Identifier: BSD-2-Clause
-- usage: counted.lua TURNS: counts the calls of its own functions, for as many turns of work as it is to do when there is a
-- line on standard input. Prints "ready", then "NAME CALLS" for each, then "end"; and ends with the next line.
local turns = tonumber(arg[1])
local calls = {}


local function leaf(x)
	calls.leaf = calls.leaf + 1
	return x
end

local function tail(x)
	calls.tail = calls.tail + 1
	return leaf(x)
end

local function vararg(...)
	calls.vararg = calls.vararg + 1
	return ...
end

-- so deep that the stack has to grow
local function deep(n)
	calls.deep = calls.deep + 1
	if n > 0 then
		return 1 + deep(n - 1)
	end
	return 0
end

local function few(a, b, c, d)
	calls.few = calls.few + 1
	return d or a
end

local function body(x)
	calls.body = calls.body + 1
	while true do
		calls.yield = calls.yield + 1
		x = coroutine.yield(x)
	end
end

local function fails()
	calls.fails = calls.fails + 1
	error("on purpose")
end

local methods = {}
function methods.method(self)
	calls.method = calls.method + 1
	return self
end

local function index(t, k)
	calls.index = calls.index + 1
	return methods[k]
end

local function called(self, x)
	calls.called = calls.called + 1
	return x
end

local function add(a, b)
	calls.add = calls.add + 1
	return 1
end

local function compare(a, b)
	calls.compare = calls.compare + 1
	return a < b
end

local object = setmetatable({}, {__index = index, __call = called, __add = add})

local function tail_called(x)
	calls.tail_called = calls.tail_called + 1
	return object(x)
end

local rep, create, resume, pcall_ = string.rep, coroutine.create, coroutine.resume, pcall

local function tail_c(x)
	calls.tail_c = calls.tail_c + 1
	return rep(x, 3)
end

local names = {"leaf", "tail", "vararg", "deep", "few", "body", "yield", "fails", "method", "index", "called", "add", "compare",
	"tail_called", "tail_c", "once", "pcall", "rep", "resume", "create"}
for _, name in ipairs(names) do
	calls[name] = 0
end

local function once(i)
	calls.once = calls.once + 1
	leaf(i)
	tail(i)
	vararg(i, i)
	vararg()
	few(i)
	few(1, 2, 3, 4)
	object(i)
	object:method()
	tail_called(i)
	calls.rep = calls.rep + 1
	tail_c("y")
	local sum = object + 1
	calls.pcall = calls.pcall + 2
	pcall_(leaf, i)
	pcall_(fails)
	calls.rep = calls.rep + 1
	rep("x", 3)
	calls.create = calls.create + 1
	local co = create(body)
	calls.resume = calls.resume + 2
	resume(co, 1)
	resume(co, 2)
	if i % 50 == 0 then
		deep(150)
		table.sort({3, 1, 2, 5, 4}, compare)
		-- its stack is small still
		calls.create = calls.create + 1
		calls.resume = calls.resume + 1
		resume(create(deep), 150)
	end
	return sum
end

io.write("ready\n")
io.flush()
io.read("*l")
for i = 1, turns do
	once(i)
end
for _, name in ipairs(names) do
	io.write(name, " ", calls[name], "\n")
end
io.write("end\n")
io.flush()
io.read("*l")

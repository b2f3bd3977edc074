-- SPDX-License-Identifier: BSD-2-Clause
-- Two functions of the same sizes that begin on one line, for hosts/new_vm.c: a() works twice as long as b().
local function a() local x = 0 for i = 1, 20000 do x = x + i % 7 end return x end local function b() local x = 0 for i = 1, 10000 do x = x + i % 5 end return x end
local x = a() + b()
return x

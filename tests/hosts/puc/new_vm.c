// SPDX-License-Identifier: BSD-2-Clause
#include "../new_vm.c"

// SPDX-License-Identifier: BSD-2-Clause
#include "../deep.c"

// SPDX-License-Identifier: BSD-2-Clause
#include "../resumes.c"

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROF_FUNCTION_VMS_H
#define PROF_FUNCTION_VMS_H

struct functions;

/* Joins functions of one source that several VMs run, and sets functions->of. 0 or -ENOMEM. */
int functions_join_vms(struct functions *functions);

#endif

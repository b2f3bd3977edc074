/* SPDX-License-Identifier: BSD-2-Clause */
/* The uses that a run makes of rights: the tables in caps.c and confine.c name the rights of each. */
#ifndef BASE_USES_H
#define BASE_USES_H

enum use {
	USE_ANY = 1,	     /* memory, time, open files: always there */
	USE_TARGETS = 2,     /* the event loop: looks into processes, and reads their files */
	USE_CHILDREN = 4,    /* opens events on the threads of processes that it meets */
	USE_OLD_MAPS = 8,    /* the kernel asks for CAP_BPF at each access to a map */
	USE_FILES = 16,	     /* writes files by name: opens, links and renames them */
	USE_CALLER = 32,     /* ... with the file-system IDs of the user who called sudo */
	USE_SOURCES = 64,    /* a child reads source files with the rights of other users */
	USE_COMMAND = 128,   /* signals a launched command, which may be another user's */
	USE_LOADING = 256,   /* loads BPF programs and opens events: not with confine() */
	USE_COST = 512,	     /* has the kernel count the time that BPF takes: not with confine() */
	USE_EVENTS = 1024,   /* opens events where that takes CAP_SYS_ADMIN: set by caps_keep() */
	USE_PROGRAMS = 2048, /* loads BPF programs on request: the children of bpf/families.c */
};

#endif

// SPDX-License-Identifier: BSD-2-Clause
/* The report of a VM as JSON. */
#include "base/json.h"
#include "lua/lj/proto_parts.h"
#include "report.h"

static void add_place(struct json *o, const char *name, const struct traces_place *at)
{
	struct json place = json_object();
	__text struct text loc = {0};

	traces_put_place(at, &loc);
	place.bad |= text_err(&loc) != 0;
	json_text(&place, "loc", at->pt ? text_str(&loc) : "");
	json_text(&place, "chunk", at->pt ? at->pt->chunkname : "");
	if (at->pt && at->line > 0)
		json_number(&place, "line", at->line);
	else
		json_null(&place, "line");
	if (at->pt) {
		json_number(&place, "function_line", at->pt->firstline);
		json_number(&place, "bytecode", at->bcpos);
	}
	json_item(o, name, json_take(&place));
}

static cJSON *lines_json(const struct traces_lines *lines)
{
	struct json o = json_object();

	json_text(&o, "chunk", lines->pt->chunkname);
	json_number(&o, "function_line", lines->pt->firstline);
	json_number(&o, "from", lines->from);
	json_number(&o, "to", lines->to);
	return json_take(&o);
}

/* Those that were taken. */
static void add_exits(struct json *o, const struct traces_trace *t)
{
	struct json exits = json_array();

	for (uint32_t i = 0; i < t->snapshots; i++) {
		struct json one;

		if (!t->exits[i].count)
			continue;
		one = json_object();
		json_number(&one, "exit", i);
		if (t->exits[i].count == TRACES_EXIT_DONE)
			json_null(&one, "count");
		else
			json_number(&one, "count", t->exits[i].count);
		add_place(&one, "at", &t->exits[i].at);
		json_append(&exits, json_take(&one));
	}
	json_item(o, "exits", json_take(&exits));
}

/* Adds n; or null for 0, which stands for a number that does not exist or is not known. */
static void add_positive(struct json *o, const char *name, uint32_t n)
{
	if (n)
		json_number(o, name, n);
	else
		json_null(o, name);
}

static cJSON *trace_json(const struct traces_trace *t, const struct traces_shares *shares)
{
	struct json o = json_object(), lines = json_array();

	json_number(&o, "trace", t->no);
	json_text(&o, "type", t->root ? "side" : t->stitched ? "stitched" : "root");
	add_positive(&o, "root", t->root);
	add_positive(&o, "parent", t->parent);
	if (t->parent && !t->stitched)
		json_number(&o, "parent_exit", t->exitno);
	else
		json_null(&o, "parent_exit");
	add_positive(&o, "link", t->link);
	json_text(&o, "linktype", traces_link_name(t->linktype));
	json_bool(&o, "flushed", t->gone);
	json_number(&o, "times_compiled", t->times);
	add_place(&o, "start", &t->start);
	for (size_t i = 0; i < t->nlines; i++)
		json_append(&lines, lines_json(&t->lines[i]));
	json_item(&o, "lines", json_take(&lines));
	add_positive(&o, "bytecodes", t->bytecodes);
	json_number(&o, "ir", t->ir);
	json_number(&o, "constants", t->constants);
	json_number(&o, "snapshots", t->snapshots);
	json_number(&o, "mcode_size", t->mcode_size);
	json_address(&o, "mcode", t->mcode);
	add_exits(&o, t);
	if (shares)
		json_number(&o, "samples", (double)t->samples);
	return json_take(&o);
}

static cJSON *start_json(const struct traces_vm *vm, const struct traces_start *s,
			 const struct traces_shares *shares)
{
	static const char *const states[] = {
		[TRACES_PENALISED] = "penalised",
		[TRACES_BLACKLISTED] = "blacklisted",
		[TRACES_JIT_OFF] = "jit.off",
	};
	struct json o = json_object();
	char reason[128];

	json_text(&o, "kind", s->kind == TRACES_LOOP ? "loop" : "function");
	add_place(&o, "start", &s->at);
	json_item(&o, "lines", lines_json(&s->lines));
	json_text(&o, "state", states[s->state]);
	add_positive(&o, "penalty", s->penalty);
	if (s->reason == TRACES_NO_REASON) {
		json_null(&o, "reason");
		json_null(&o, "reason_number");
	} else {
		traces_reason(vm, s, reason, sizeof(reason));
		json_text(&o, "reason", reason);
		json_number(&o, "reason_number", s->reason);
	}
	if (s->has_cause && s->cause.pt)
		add_place(&o, "cause", &s->cause);
	else
		json_null(&o, "cause");
	if (shares)
		json_number(&o, "samples", (double)s->samples);
	return json_take(&o);
}

static cJSON *shares_json(const struct traces_shares *s)
{
	struct json o = json_object();

	json_number(&o, "samples", (double)s->samples);
	json_number(&o, "compiled", (double)s->compiled);
	json_number(&o, "interpreted", (double)s->interpreted);
	json_number(&o, "c", (double)s->c);
	json_number(&o, "collector", (double)s->collector);
	json_number(&o, "compiler", (double)s->compiler);
	json_number(&o, "unknown_trace", (double)s->no_trace);
	json_number(&o, "no_reason", (double)s->no_reason);
	return json_take(&o);
}

cJSON *traces_json(const struct traces_vm *vm, const struct traces_shares *shares)
{
	struct json o = json_object(), traces = json_array(), starts = json_array();

	json_address(&o, "global_state", vm->g);
	for (size_t i = 0; i < vm->ntraces; i++)
		json_append(&traces, trace_json(&vm->traces[i], shares));
	json_item(&o, "traces", json_take(&traces));
	for (size_t i = 0; i < vm->nstarts; i++)
		if (!vm->starts[i].gone)
			json_append(&starts, start_json(vm, &vm->starts[i], shares));
	json_item(&o, "not_compiled", json_take(&starts));
	traces_listing_json(vm, &o);
	json_number(&o, "unread_traces", vm->unread);
	json_number(&o, "unread_starts", vm->unread_starts);
	json_bool(&o, "penalties_known", vm->has_penalties);
	json_bool(&o, "functions_complete", vm->has_heap);
	if (shares)
		json_item(&o, "shares", shares_json(shares));
	return json_take(&o);
}

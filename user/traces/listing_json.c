// SPDX-License-Identifier: BSD-2-Clause
/* The listed functions as JSON: what annotate.c shows, without the source. */
#include "base/cleanup.h"
#include "base/json.h"
#include "bytecode.h"
#include "listing.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "report.h"

static cJSON *number(uint32_t n)
{
	return cJSON_CreateNumber(n);
}

static cJSON *exit_json(const struct traces_mark *m)
{
	uint8_t count = m->trace->exits[m->exit].count;
	struct json o = json_object();

	json_number(&o, "trace", m->trace->no);
	json_number(&o, "exit", m->exit);
	if (m->side)
		json_number(&o, "side", m->side->no);
	else
		json_null(&o, "side");
	if (count == TRACES_EXIT_DONE)
		json_null(&o, "count");
	else
		json_number(&o, "count", count);
	return json_take(&o);
}

/* Adds an array of the marks of a kind, if there are any. */
static void add_marks(struct json *o, const char *name, const struct traces_mark *marks, size_t n,
		      enum traces_mark_kind kind)
{
	struct json all = json_array();
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		if (marks[i].kind != kind)
			continue;
		found++;
		json_append(&all, kind == TRACES_MARK_EXIT ? exit_json(&marks[i])
							   : number(marks[i].trace->no));
	}
	if (found)
		json_item(o, name, json_take(&all));
	else
		cJSON_Delete(json_take(&all));
}

static void add_starts(const struct traces_vm *vm, struct json *o, const struct traces_mark *marks,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		__text struct text said = {0};

		if (marks[i].kind != TRACES_MARK_START && marks[i].kind != TRACES_MARK_CAUSE)
			continue;
		if (marks[i].kind == TRACES_MARK_START)
			traces_put_reason(vm, marks[i].start, &said);
		else
			traces_put_start(marks[i].start, &said);
		o->bad |= text_err(&said) != 0;
		json_text(o, marks[i].kind == TRACES_MARK_START ? "not_compiled" : "abort_of",
			  text_str(&said));
	}
}

static cJSON *ins_json(const struct traces_vm *vm, const struct lj_proto *pt, uint32_t pos,
		       bool target, const struct traces_mark *marks, size_t n)
{
	struct json o = json_object();
	__text struct text ins = {0}, before = {0};
	int32_t line = lj_proto_line(pt, pos);
	uint32_t was;

	json_number(&o, "bytecode", pos);
	if (line > 0)
		json_number(&o, "line", line);
	else
		json_null(&o, "line");
	traces_put_bytecode(vm, pt, pos, lj_proto_ins(pt, pos), &ins);
	json_text(&o, "text", text_str(&ins));
	if (target)
		json_bool(&o, "jumped_to", true);
	if (traces_was(pt, pos, marks, n, &was)) {
		traces_put_bytecode(vm, pt, pos, was, &before);
		json_text(&o, "was", text_str(&before));
	}
	o.bad |= text_err(&ins) || text_err(&before);
	add_marks(&o, "traces", marks, n, TRACES_MARK_COVERED);
	add_marks(&o, "starts", marks, n, TRACES_MARK_TRACE);
	add_marks(&o, "exits", marks, n, TRACES_MARK_EXIT);
	add_starts(vm, &o, marks, n);
	return json_take(&o);
}

static cJSON *function_json(const struct traces_vm *vm, const struct traces_listed *f)
{
	bool *targets __cleanup(cleanup_free) = traces_jump_targets(f->pt);
	struct json o = json_object(), code = json_array();
	size_t from = 0, to;

	json_text(&o, "chunk", f->pt->chunkname);
	json_number(&o, "function_line", f->pt->firstline);
	json_number(&o, "last_line", f->pt->firstline + (double)f->pt->numline);
	code.bad |= !targets;
	for (uint32_t pos = 0; pos < f->pt->sizebc && !code.bad; pos++, from = to) {
		for (to = from; to < f->nmarks && f->marks[to].bcpos == pos; to++)
			;
		json_append(&code,
			    ins_json(vm, f->pt, pos, targets[pos], &f->marks[from], to - from));
	}
	json_item(&o, "code", json_take(&code));
	return json_take(&o);
}

void traces_listing_json(const struct traces_vm *vm, struct json *o)
{
	struct traces_listing l __cleanup(traces_listing_free) = {};
	struct json functions = json_array();

	functions.bad |= traces_listing_new(vm, &l) != 0;
	for (size_t i = 0; i < l.n && !functions.bad; i++)
		json_append(&functions, function_json(vm, &l.functions[i]));
	json_item(o, "functions", json_take(&functions));
	json_number(o, "functions_left_out", (double)l.left_out);
	json_number(o, "marks_left_out", (double)l.left_out_marks);
}

// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "chrome.h"
#include "coverage.h"
#include "costacks.h"

struct chrome_frame {
	uint32_t function;
	uint64_t since_ns;
};

struct chrome {
	FILE *to;
	const struct program *program;
	uint32_t pid, tid;
	struct costacks stacks; /* of struct chrome_frame */
	uint64_t now;
	struct text name;
};

void chrome_begin(FILE *to)
{
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	      "{\"name\":\"luabpf\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{}}",
	      to);
}

void chrome_end(FILE *to)
{
	fputs("\n]}\n", to);
}

int chrome_new(FILE *to, const struct program *program, uint32_t pid, uint32_t tid,
	       struct chrome **out)
{
	struct chrome *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct chrome){.to = to, .program = program, .pid = pid, .tid = tid};
	c->stacks.frame_size = sizeof(struct chrome_frame);
	*out = c;
	return 0;
}

void chrome_free(struct chrome **chrome)
{
	struct chrome *c = *chrome;

	if (!c)
		return;
	costacks_free(&c->stacks);
	text_free(&c->name);
	free(c);
	*chrome = NULL;
}

/* A JSON string without its quotes. */
static void put_json(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc_unlocked('\\', to);
		if ((unsigned char)*s >= ' ')
			putc_unlocked(*s, to);
	}
}

static void put_event(struct chrome *c, const struct chrome_frame *frame)
{
	const struct program *p = c->program;
	const struct program_function *f =
		frame->function < p->nfunctions ? &p->functions[frame->function] : NULL;
	uint64_t ns = c->now - frame->since_ns;
	char name[256] = "?";

	if (f)
		coverage_name(f, name, sizeof(name));
	text_clear(&c->name);
	text_put_utf8(&c->name, name, strlen(name));
	if (f && f->source < p->nsources)
		text_printf(&c->name, " ");
	if (f && f->source < p->nsources)
		text_put_utf8(&c->name, p->sources[f->source].name,
			      strnlen(p->sources[f->source].name, 200));
	if (f && f->source < p->nsources && f->first)
		text_printf(&c->name, ":%" PRId32, f->first);
	fputs(",\n{\"name\":\"", c->to);
	put_json(c->to, text_str(&c->name));
	fprintf(c->to,
		"\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"pid\":%" PRIu32
		",\"tid\":%" PRIu32 "}",
		frame->since_ns / 1000, (unsigned)(frame->since_ns % 1000), ns / 1000,
		(unsigned)(ns % 1000), c->pid, c->tid);
}

static int push(struct chrome *c, uint32_t function)
{
	struct chrome_frame *frame = costack_push(costacks_current(&c->stacks), sizeof(*frame));

	if (!frame)
		return -ENOMEM;
	*frame = (struct chrome_frame){function, c->now};
	return 0;
}

static void pop(struct chrome *c, size_t n)
{
	struct costack *t = costacks_current(&c->stacks);

	while (n--)
		put_event(c, (struct chrome_frame *)t->frames + --t->n);
}

static int resume(struct chrome *c, uint32_t number)
{
	int ret = costacks_resume(&c->stacks, number);
	const struct costack *t = costacks_current(&c->stacks);

	for (size_t i = 0; !ret && i < t->n; i++)
		((struct chrome_frame *)t->frames)[i].since_ns = c->now;
	return ret;
}

static void yield(struct chrome *c)
{
	const struct costack *t = costacks_current(&c->stacks);

	for (size_t i = t->n; i > 0; i--)
		put_event(c, (struct chrome_frame *)t->frames + i - 1);
	costacks_yield(&c->stacks);
}

int chrome_put(void *chrome, const struct trace_action *action)
{
	struct chrome *c = chrome;

	c->now = action->time_ns;
	switch (action->kind) {
	case TRACE_CALL:
	case TRACE_FRAME:
		return push(c, action->arg);
	case TRACE_TAIL_CALL:
		pop(c, 1);
		return push(c, action->arg);
	case TRACE_RETURN:
		pop(c, 1);
		break;
	case TRACE_UNWIND:
		pop(c, action->arg);
		break;
	case TRACE_RESUME:
		return resume(c, action->arg);
	case TRACE_YIELD:
		yield(c);
		break;
	}
	return text_err(&c->name);
}

void chrome_finish(struct chrome *chrome)
{
	while (chrome->stacks.nchain)
		yield(chrome);
}

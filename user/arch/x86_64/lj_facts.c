// SPDX-License-Identifier: BSD-2-Clause
/*
 * The VM's text (vm_x64.dasc) addresses global_State and jit_State relative to r14, which is
 * g + GG_G2DISP. Its instructions hold the offset of each field that varies between builds, so the
 * offsets are measured, without a table of versions. All instructions of a kind must have the same
 * offset. Cost: one pass per pattern.
 */
#include "arch/lj_facts.h"

#include <string.h>

#include <unwind/lj/layout.h>

/* Patterns of instructions: bytes and wildcards. Each number is the next of the facts. */
enum {
	END,	     /* no pattern contains the byte 00 */
	ANY = 0x100, /* any byte */
	I1,	     /* a number of one byte */
	I4,	     /* a number of four bytes */
	D4,	     /* the same, relative to r14 */
};
#define PATTERN_CODE 28 /* bytes at most, and END */
#define PATTERN_FACTS 5

struct pattern {
	uint16_t code[PATTERN_CODE];
	uint8_t fact[PATTERN_FACTS];
};

/* add r14, GG_G2DISP */
static const struct pattern g2disp = {{0x49, 0x81, 0xc6, I4}, {LJ_FACT_G2DISP}};
/* Built without GC64: add r14d, GG_G2DISP */
static const struct pattern g2disp_gc32 = {{0x41, 0x81, 0xc6, I4}, {LJ_FACT_G2DISP}};

static const struct pattern patterns_gc64[] = {
	/* mov dword [vmstate], ~INTERP */
	{{0x41, 0xc7, 0x86, D4, 0xff, 0xff, 0xff, 0xff}, {LJ_FACT_VMSTATE}},
	/* movzx ebp, byte [hookmask] */
	{{0x41, 0x0f, 0xb6, 0xae, D4}, {LJ_FACT_HOOKMASK}},
	/* vm_exit_handler: mov ecx, [vmstate]; mov [vmstate], ~EXIT; mov [J.exitno], eax;
	 * mov [J.parent], ecx */
	{{0x41, 0x8b, 0x8e, D4,	  0x41, 0xc7, 0x86, D4,	  I1,	0xff,
	  0xff, 0xff, 0x41, 0x89, 0x86, D4,   0x41, 0x89, 0x8e, D4},
	 {LJ_FACT_VMSTATE, LJ_FACT_VMSTATE, LJ_FACT_EXIT, LJ_FACT_EXITNO, LJ_FACT_PARENT}},
	/* ... mov rbp, [cur_L]; mov rdx, [jit_base] */
	{{0x49, 0x8b, 0xae, D4, 0x49, 0x8b, 0x96, D4}, {LJ_FACT_CUR_L, LJ_FACT_JIT_BASE}},
	/* BC_JLOOP: mov rcx, [J.trace]; mov rax, [rcx+rax*8]; mov rax, [rax+GCtrace.mcode];
	 * mov rbp, SAVE_L; mov [jit_base], rdx */
	{{0x49,		  0x8b, 0x8e, D4,   0x48, 0x8b,	       0x04, 0xc1, 0x48, 0x8b, 0x40,
	  LJ_TRACE_MCODE, 0x48, 0x8b, 0x6c, 0x24, LJ_CFRAME_L, 0x49, 0x89, 0x96, D4},
	 {LJ_FACT_TRACE, LJ_FACT_JIT_BASE}},
	/* vm_call: mov r15, [rbp+lua_State.cframe]; mov SAVE_CFRAME, r15 */
	{{0x4c, 0x8b, 0x7d, LJ_L_CFRAME, 0x4c, 0x89, 0x7c, 0x24, I1}, {LJ_FACT_CFRAME_PREV}},
	/* BC_TNEW: mov rcx, [gc.total]; cmp rcx, [gc.threshold] */
	{{0x49, 0x8b, 0x8e, D4, 0x49, 0x3b, 0x8e, D4}, {LJ_FACT_GC_TOTAL, LJ_FACT_GC_THRESHOLD}},
	/* BC_LEN: cmp r11d, LJ_TSTR; jne; xorps xmm0, xmm0; cvtsi2sd xmm0, [rax+GCstr.len] */
	{{0x41, 0x83, 0xfb, 0xfb, 0x75, ANY, 0x0f, 0x57, 0xc0, 0xf2, 0x0f, 0x2a, 0x40, I1},
	 {LJ_FACT_STR_LEN}},
	/* vm_exit_interp: cmp ebp, BC_FUNCF; jb; cmp ebp, BC_FUNCC+2; jae */
	{{0x83, 0xfd, I1, 0x72, ANY, 0x83, 0xfd, I1, 0x73}, {LJ_FACT_FUNCF, LJ_FACT_FUNCC_END}},
	/* vm_call: push rbx; push r15; push r14; sub rsp, CFRAME_SPACE */
	{{0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, I1}, {LJ_FACT_SPACE4}},
	/* ... push r15; push r14; push r13; push r12; sub rsp, CFRAME_SPACE */
	{{0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x48, 0x83, 0xec, I1}, {LJ_FACT_SPACE6}},
	/* vm_exit_interp: mov esi, eax; mov rdi, rbp; neg esi; call lj_err_trace: added together with mcofs, by
	 * which it looks up the snapshot */
	{{0x89, 0xc6, 0x48, 0x89, 0xef, 0xf7, I1, 0xe8}, {LJ_FACT_MCOFS}},
};

/* GC32: the same code of vm_x86.dasc. */
static const struct pattern patterns_gc32[] = {
	/* mov dword [vmstate], ~INTERP */
	{{0x41, 0xc7, 0x86, D4, 0xff, 0xff, 0xff, 0xff}, {LJ_FACT_VMSTATE}},
	/* movzx ebp, byte [hookmask] */
	{{0x41, 0x0f, 0xb6, 0xae, D4}, {LJ_FACT_HOOKMASK}},
	/* vm_exit_handler: mov ecx, [vmstate]; mov [vmstate], ~EXIT; mov [J.exitno], eax;
	 * mov [J.parent], ecx */
	{{0x41, 0x8b, 0x8e, D4,	  0x41, 0xc7, 0x86, D4,	  I1,	0xff,
	  0xff, 0xff, 0x41, 0x89, 0x86, D4,   0x41, 0x89, 0x8e, D4},
	 {LJ_FACT_VMSTATE, LJ_FACT_VMSTATE, LJ_FACT_EXIT, LJ_FACT_EXITNO, LJ_FACT_PARENT}},
	/* ... mov ebp, [cur_L]; mov edx, [jit_base] */
	{{0x41, 0x8b, 0xae, D4, 0x41, 0x8b, 0x96, D4}, {LJ_FACT_CUR_L, LJ_FACT_JIT_BASE}},
	/* BC_JLOOP: mov ecx, [J.trace]; mov eax, [rcx+rax*4]; mov rax, [rax+GCtrace.mcode];
	 * mov ebp, SAVE_L; mov [jit_base], edx */
	{{0x41, 0x8b, 0x8e, D4, 0x8b, 0x04, 0x81, 0x48, 0x8b, 0x40, LJ32_TRACE_MCODE, 0x8b, 0x6c,
	  0x24, LJ32_CFRAME_L, 0x41, 0x89, 0x96, D4},
	 {LJ_FACT_TRACE, LJ_FACT_JIT_BASE}},
	/* vm_call: mov r15, [rbp+lua_State.cframe]; mov SAVE_CFRAME, r15 */
	{{0x4c, 0x8b, 0x7d, LJ32_L_CFRAME, 0x4c, 0x89, 0x7c, 0x24, I1}, {LJ_FACT_CFRAME_PREV}},
	/* BC_TNEW: mov ecx, [gc.total]; cmp ecx, [gc.threshold] */
	{{0x41, 0x8b, 0x8e, D4, 0x41, 0x3b, 0x8e, D4}, {LJ_FACT_GC_TOTAL, LJ_FACT_GC_THRESHOLD}},
	/* BC_LEN: mov eax, [rdx+rax*8]; xorps xmm0, xmm0; cvtsi2sd xmm0, [rax+GCstr.len] */
	{{0x8b, 0x04, 0xc2, 0x0f, 0x57, 0xc0, 0xf2, 0x0f, 0x2a, 0x40, I1}, {LJ_FACT_STR_LEN}},
	/* vm_exit_interp: cmp ebp, BC_FUNCF; jb; cmp ebp, BC_FUNCC+2; jae */
	{{0x83, 0xfd, I1, 0x72, ANY, 0x83, 0xfd, I1, 0x73}, {LJ_FACT_FUNCF, LJ_FACT_FUNCC_END}},
	/* ... in 2.0: cmp ebp, BC_FUNCF; jb; mov eax, MULTRES */
	{{0x83, 0xfd, I1, 0x72, ANY, 0x8b, 0x44, 0x24, 0x04}, {LJ_FACT_FUNCF}},
	/* vm_call: push rbx; push r15; push r14; sub rsp, CFRAME_SPACE */
	{{0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, I1}, {LJ_FACT_SPACE4}},
	/* ... push r15; push r14; push r13; push r12; sub rsp, CFRAME_SPACE */
	{{0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x48, 0x83, 0xec, I1}, {LJ_FACT_SPACE6}},
	/* vm_exit_interp: mov esi, eax; mov edi, ebp; neg esi; call lj_err_trace */
	{{0x89, 0xc6, 0x89, 0xef, 0xf7, I1, 0xe8}, {LJ_FACT_MCOFS}},
};

/* True if the code at p, `left` bytes, matches. Displacements are from r14 = g + disp. */
static bool match(const struct pattern *pattern, const uint8_t *p, size_t left, int64_t disp,
		  int64_t numbers[PATTERN_FACTS])
{
	const uint16_t *code;
	size_t n = 0, len;
	int32_t v;

	for (code = pattern->code; *code != END; code++) {
		len = *code >= I4 ? sizeof(v) : 1;
		if (left < len || (*code < ANY && *p != *code))
			return false;
		if (*code > ANY) {
			v = *p;
			if (len == sizeof(v))
				memcpy(&v, p, sizeof(v));
			numbers[n++] = *code == D4 ? disp + v : v;
		}
		p += len;
		left -= len;
	}
	return true;
}

static void look_for(const struct pattern *pattern, const uint8_t *text, size_t size,
		     struct lj_measured *m)
{
	int64_t numbers[PATTERN_FACTS] = {0}, disp = m->fact[LJ_FACT_G2DISP];
	size_t at, i;

	for (at = 0; at < size; at++) {
		if (text[at] != pattern->code[0] ||
		    !match(pattern, text + at, size - at, disp, numbers))
			continue;
		for (i = 0; i < PATTERN_FACTS && (!i || pattern->fact[i]); i++) {
			uint32_t *fact = &m->fact[pattern->fact[i]];
			bool fits = numbers[i] > 0 && numbers[i] <= UINT16_MAX;

			*fact = fits && (!*fact || *fact == numbers[i]) ? (uint32_t)numbers[i]
									: LJ_FACT_DIFFERS;
		}
	}
}

void lj_measure(const uint8_t *text, size_t size, struct lj_measured *out)
{
	const struct pattern *patterns = patterns_gc64;
	size_t n = sizeof(patterns_gc64) / sizeof(patterns_gc64[0]), i;

	memset(out, 0, sizeof(*out));
	look_for(&g2disp, text, size, out);
	if (!out->fact[LJ_FACT_G2DISP]) {
		look_for(&g2disp_gc32, text, size, out);
		out->gc32 = out->fact[LJ_FACT_G2DISP];
	}
	if (out->fact[LJ_FACT_G2DISP] > UINT16_MAX)
		return;
	if (out->gc32) {
		patterns = patterns_gc32;
		n = sizeof(patterns_gc32) / sizeof(patterns_gc32[0]);
	}
	for (i = 0; i < n; i++)
		look_for(&patterns[i], text, size, out);
}

uint32_t lj_measured_cframe(const struct lj_measured *m)
{
	return m->fact[LJ_FACT_SPACE6] ? m->fact[LJ_FACT_SPACE6] + 7 * 8
				       : m->fact[LJ_FACT_SPACE4] + 5 * 8;
}

size_t lj_measured_size(const uint8_t *text, size_t size)
{
	/* push rbp; mov rbp, rsp; push rbx; mov rbx, rdi */
	static const uint8_t ffi_call[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb};
	size_t at = size;

	while (at-- > 0)
		if (size - at >= sizeof(ffi_call) && !memcmp(text + at, ffi_call, sizeof(ffi_call)))
			return at;
	return size;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * The VM's text (vm_x64.dasc) addresses global_State and jit_State relative to r14, which is
 * g + GG_G2DISP. Its instructions hold the offset of each field that varies between builds, so the
 * offsets are measured, without a table of versions. All instructions of a kind must have the same
 * offset, and the offsets must be consistent with each other. Cost: one pass per pattern.
 *
 * global_State has two layouts, which these offsets distinguish:
 *
 *	global_State until 2020-06, and Tarantool's	since 2020-06-23
 *	  ... strempty, hookmask			  ... strempty, hookmask
 *	  mainthref	= hookmask + 7			  str
 *	  registrytv	= hookmask + 15			  vmstate	= hookmask + 39
 *	  vmstate elsewhere				  mainthref	= vmstate + 8
 *							  tmpbuf, tmptv, tmptv2, nilnode
 *							  registrytv	= vmstate + 88
 *
 * In GC32: mainthref = hookmask + 3, registrytv is the next multiple of 8; and since 2020-06-23
 * mainthref = vmstate + 4, registrytv = vmstate + 64, or + 80 since 2021-06 (tmptv2).
 */
#include "measure.h"

#include <string.h>

const char *const lj_fact_names[LJ_FACTS] = {
	[LJ_FACT_G2DISP] = "GG_G2DISP",	   [LJ_FACT_VMSTATE] = "vmstate",
	[LJ_FACT_HOOKMASK] = "hookmask",   [LJ_FACT_CUR_L] = "cur_L",
	[LJ_FACT_JIT_BASE] = "jit_base",   [LJ_FACT_TRACE] = "J.trace",
	[LJ_FACT_PARENT] = "J.parent",	   [LJ_FACT_EXITNO] = "J.exitno",
	[LJ_FACT_EXIT] = "LJ_VMST_EXIT",   [LJ_FACT_CFRAME_PREV] = "SAVE_CFRAME",
	[LJ_FACT_STR_LEN] = "GCstr.len",   [LJ_FACT_FUNCF] = "BC_FUNCF",
	[LJ_FACT_GC_TOTAL] = "gc.total",   [LJ_FACT_GC_THRESHOLD] = "gc.threshold",
	[LJ_FACT_FUNCC_END] = "BC_FUNCC",  [LJ_FACT_MCOFS] = "SnapShot.mcofs",
	[LJ_FACT_SPACE4] = "CFRAME_SPACE", [LJ_FACT_SPACE6] = "CFRAME_SPACE",
};

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

/* LuaJIT 2.0: all of its builds have these numbers of bytecode. */
static bool is_20(const struct lj_measured *m)
{
	return m->gc32 && m->fact[LJ_FACT_FUNCF] == LJ_FUNCF_20;
}

/*
 * Returns registrytv's offset, by global_State's layout; 0: it is neither. Since 2020-06-23 it follows
 * vmstate at a distance; before, and in Tarantool's, it is aligned to 8 behind
 *
 *     u8 hookmask, dispatchmode, vmevmask; GCRef mainthref
 *
 * where Tarantool's, whose vmstate is behind them, has i32 hookcount before mainthref.
 */
static uint32_t registrytv(const struct lj_measured *m)
{
	uint32_t vmstate = m->fact[LJ_FACT_VMSTATE], hookmask = m->fact[LJ_FACT_HOOKMASK];
	bool tmptv2 = m->fact[LJ_FACT_CUR_L] - vmstate > 136, hookcount;

	if (m->gc32) {
		if (vmstate == hookmask + 39)
			return vmstate + (tmptv2 ? 80 : 64);
		if ((hookmask & 3) != 1 || vmstate == hookmask)
			return 0;
		hookcount = vmstate > hookmask && !is_20(m);
		return (hookmask + 3 + (hookcount ? 4 : 0) + 4 + 7) & ~7u;
	}
	if (vmstate == hookmask + 39)
		return vmstate + 88;
	return (hookmask & 7) == 1 && vmstate != hookmask ? hookmask + 15 : 0;
}

/* Returns how many states before EXIT, C and GC are the interpreter's: INTERP, or Tarantool's three
 * (INTERP, LFUNC, FFUNC). */
static uint32_t interp_states(uint32_t exit)
{
	return (uint8_t)~exit - 2u;
}

static bool is_str_len(const struct lj_measured *m)
{
	uint32_t len = m->fact[LJ_FACT_STR_LEN];

	if (m->gc32)
		return len == LJ32_STR_LEN || len == LJ32_STR_LEN_2017;
	return len == LJ_STR_LEN || len == LJ_STR_LEN_2017;
}

static enum lj_fact disagrees(const struct lj_measured *m, uint32_t cframe_size)
{
	const uint32_t *f = m->fact;
	uint32_t gap = f[LJ_FACT_JIT_BASE] - f[LJ_FACT_CUR_L], ref_size = m->gc32 ? 4 : 8;
	int i;

	for (i = 0; i < LJ_FACT_MCOFS; i++)
		if ((!f[i] || f[i] == LJ_FACT_DIFFERS) && !(is_20(m) && i == LJ_FACT_FUNCC_END))
			return i;
	if (!registrytv(m))
		return LJ_FACT_HOOKMASK;
	if (gap != ref_size && gap != 2 * ref_size) /* Tarantool's mem_L is between */
		return LJ_FACT_JIT_BASE;
	if (f[LJ_FACT_TRACE] >= f[LJ_FACT_G2DISP])
		return LJ_FACT_TRACE;
	if (f[LJ_FACT_PARENT] <= f[LJ_FACT_TRACE])
		return LJ_FACT_PARENT;
	if (f[LJ_FACT_EXITNO] != f[LJ_FACT_PARENT] + 4)
		return LJ_FACT_EXITNO;
	if (interp_states(f[LJ_FACT_EXIT]) != 1 && interp_states(f[LJ_FACT_EXIT]) != 3)
		return LJ_FACT_EXIT;
	/* above it are five pushed words: four registers and the return address; or two registers more */
	if (f[LJ_FACT_CFRAME_PREV] + (f[LJ_FACT_SPACE6] ? 64 : 48) != cframe_size)
		return LJ_FACT_CFRAME_PREV;
	if (!is_str_len(m))
		return LJ_FACT_STR_LEN;
	if (f[LJ_FACT_GC_TOTAL] > UINT8_MAX)
		return LJ_FACT_GC_TOTAL;
	if (f[LJ_FACT_GC_THRESHOLD] != f[LJ_FACT_GC_TOTAL] + ref_size)
		return LJ_FACT_GC_THRESHOLD;
	if (f[LJ_FACT_FUNCF] <= LJ_OP_JMP && !is_20(m))
		return LJ_FACT_FUNCF;
	if (f[LJ_FACT_FUNCC_END] != f[LJ_FACT_FUNCF] + 8 && !is_20(m))
		return LJ_FACT_FUNCC_END;
	return f[LJ_FACT_MCOFS] == LJ_FACT_DIFFERS ? LJ_FACT_MCOFS : LJ_FACTS;
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

enum lj_fact lj_layout_of(const struct lj_measured *m, uint32_t cframe_size, struct lj_layout *lj)
{
	const uint32_t *f = m->fact;
	enum lj_fact wrong = disagrees(m, cframe_size);

	if (wrong != LJ_FACTS)
		return wrong;
	*lj = (struct lj_layout){
		.g2disp = (uint16_t)f[LJ_FACT_G2DISP],
		.g2trace = (uint16_t)f[LJ_FACT_TRACE],
		.vmstate = (uint16_t)f[LJ_FACT_VMSTATE],
		.cur_L = (uint16_t)f[LJ_FACT_CUR_L],
		.jit_base = (uint16_t)f[LJ_FACT_JIT_BASE],
		.registrytv = (uint16_t)registrytv(m),
		.j_parent = (uint16_t)(f[LJ_FACT_PARENT] - f[LJ_FACT_TRACE]),
		.j_exitno = (uint16_t)(f[LJ_FACT_EXITNO] - f[LJ_FACT_TRACE]),
		.cframe_size = (uint8_t)cframe_size,
		.cframe_prev = (uint8_t)f[LJ_FACT_CFRAME_PREV],
		.str_len = (uint8_t)f[LJ_FACT_STR_LEN],
		.bc_funcf = (uint8_t)f[LJ_FACT_FUNCF],
		.interp_states = (uint8_t)interp_states(f[LJ_FACT_EXIT]),
		.mcofs = f[LJ_FACT_MCOFS] != 0,
		.gc32 = m->gc32,
		.v20 = is_20(m),
		.gc_total = (uint8_t)f[LJ_FACT_GC_TOTAL],
	};
	return LJ_FACTS;
}

// SPDX-License-Identifier: BSD-2-Clause
#include "lj_layouts.h"

#define LJ_LAYOUT(...) LJ_ROW(0, __VA_ARGS__)
#define LJ_LAYOUT32(...) LJ_ROW(1, __VA_ARGS__)

static const struct layout_row {
	const char *name;
	unsigned int hookmask;
	struct lj_layout lj;
} rows[] = {
#define LJ_ROW(gc32_, name_, g2disp_, vmstate_, hookmask_, cur_L_, jit_base_, g2trace_,            \
	       registrytv_, j_parent_, size_, prev_, str_len_, funcf_, states_, mcofs_, total_)    \
	{                                                                                          \
		.name = name_,                                                                     \
		.hookmask = hookmask_,                                                             \
		.lj =                                                                              \
			{                                                                          \
				.g2disp = g2disp_,                                                 \
				.g2trace = g2trace_,                                               \
				.vmstate = vmstate_,                                               \
				.cur_L = cur_L_,                                                   \
				.jit_base = jit_base_,                                             \
				.registrytv = registrytv_,                                         \
				.j_parent = j_parent_,                                             \
				.j_exitno = j_parent_ + 4,                                         \
				.cframe_size = size_,                                              \
				.cframe_prev = prev_,                                              \
				.str_len = str_len_,                                               \
				.bc_funcf = funcf_,                                                \
				.interp_states = states_,                                          \
				.mcofs = mcofs_,                                                   \
				.gc_total = total_,                                                \
				.gc32 = gc32_,                                                     \
				.v20 = funcf_ == LJ_FUNCF_20,                                      \
			},                                                                         \
	},
#include "lj_layouts.def"
#undef LJ_LAYOUT
#undef LJ_LAYOUT32
};

const struct lj_layout *lj_layout_row(size_t i, const char **name)
{
	if (i >= sizeof(rows) / sizeof(rows[0]))
		return NULL;
	*name = rows[i].name;
	return &rows[i].lj;
}

unsigned int lj_layout_hookmask(size_t i)
{
	return rows[i].hookmask;
}

# SPDX-License-Identifier: BSD-2-Clause
#
# luabpf's build. Sources are found by wildcard: a new file needs no entry here.
# `make help` lists the targets, which are the rules that carry a "##" comment.
#
# Variables for the command line:
#   O=DIR       build there instead of build/
#   V=1         show each command
#   SAN=1       AddressSanitizer and UBSan in all user-space code
#   COVERAGE=1  gcov counters in all user-space code
#   PREFIX=/usr/local, DESTDIR=  where install puts things
# A change of flags rebuilds what it concerns, so SAN=1 may share O with a plain build; giving it
# its own O just saves the rebuild.

O ?= build
# One name for each file, however O is given: dependency files have it.
override O := $(patsubst $(CURDIR)/%,%,$(abspath $(O)))
V ?= 0
SAN ?= 0
COVERAGE ?= 0
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/luabpf
COMPDIR ?= $(PREFIX)/share/bash-completion/completions
UNITDIR ?= $(PREFIX)/lib/systemd/system

VERSION := 0.1.0

CC ?= cc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
LLVM_STRIP ?= $(shell command -v llvm-strip 2>/dev/null)
PROTOC_C ?= protoc-c
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' "$(1)" "$(patsubst $(abspath $(O))/%,%,$(2))"
endif

# ---- flags ---------------------------------------------------------------------------------------

MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
ARCH := $(shell uname -m)
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))

WARN := -Wall -Wextra -Werror
ifneq ($(findstring clang,$(CC)),) # CC=clang: it warns of short initializers, and of $(DIALECT)
WARN += -Wno-missing-field-initializers -Wno-microsoft-anon-tag
endif
INCLUDES := -Iinclude -Iinclude/arch/$(ARCH) -Iuser -I$(O)/gen
CPPFLAGS_ALL := $(INCLUDES) -D_GNU_SOURCE -DLUABPF_VERSION='"$(VERSION)"' $(CPPFLAGS)
CFLAGS ?= -O2 -g
# -fms-extensions: a struct may begin with another that has no name (walk.h).
DIALECT := -std=gnu11 -fms-extensions
CFLAGS_ALL := $(DIALECT) $(WARN) $(CFLAGS) -fno-omit-frame-pointer
LDFLAGS_ALL := $(LDFLAGS)
LIBS := -lbpf -lelf -lZydis -lz -lprotobuf-c -lcjson -lcap -lseccomp -lpthread -lm

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
ifeq ($(SAN),1)
CFLAGS_ALL += $(SANITIZE)
LDFLAGS_ALL += $(SANITIZE)
endif
ifeq ($(COVERAGE),1)
CFLAGS_ALL += --coverage -fprofile-update=atomic
LDFLAGS_ALL += --coverage
endif

BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g $(DIALECT) -Wall -Werror -Wno-microsoft-anon-tag \
	-D__TARGET_ARCH_$(BPF_ARCH) -Ibpf -Iinclude -Iinclude/arch/$(ARCH) $(if $(MULTIARCH),-idirafter /usr/include/$(MULTIARCH))

# ---- what there is -------------------------------------------------------------------------------

BPF_SRC := $(wildcard bpf/*.bpf.c)
SKEL := $(BPF_SRC:bpf/%.bpf.c=$(O)/gen/%.skel.h)
PROTO := $(wildcard user/prof/*.proto)
PROTO_C := $(PROTO:user/prof/%.proto=$(O)/gen/%.pb-c.c)
PROTO_H := $(PROTO_C:.c=.h)
HOOK_INIT := $(O)/gen/hook_init.lua.h
GENERATED := $(SKEL) $(PROTO_H) $(HOOK_INIT)

OTHER_ARCH := $(filter-out user/arch/$(ARCH)/%,$(wildcard user/arch/*/*.c))
LIB_SRC := $(filter-out user/main.c $(OTHER_ARCH),$(wildcard user/*.c user/*/*.c user/*/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(O)/obj/%.o) $(PROTO_C:$(O)/%.c=$(O)/obj/%.o)
LIB := $(O)/libluabpf.a
# The library for other programs: include/luabpf.h, implemented by user/api/, and nothing else is exported.
SO := $(O)/lib/libluabpf.so
SO_VERSION := 0
SO_OBJ := $(filter $(O)/obj/user/api/%,$(LIB_OBJ))

# agent/*.c: the hook module, for each Lua whose headers are installed. It runs in targets: never sanitized.
LUA_VERSIONS := $(foreach v,5.1 5.2 5.3 5.4 5.5,$(if $(wildcard /usr/include/lua$(v)/lua.h),$(v)))
AGENT_SRC := $(wildcard agent/*.c)
AGENTS := $(LUA_VERSIONS:%=$(O)/lib/lua/%/luabpf/hook.so)
# lua/luabpf/profile.c, likewise. It finds the library three folders above its own, here and where they are installed.
LUA_MODULES := $(LUA_VERSIONS:%=$(O)/lib/lua/%/luabpf/profile.so)

# tests/lib: shared by the test programs (image builders, replay). tests/unit: one Criterion binary.
# tests/{golden,kernel,e2e,bench}/*.c: a program each, linked with the library and tests/lib.
# tests/hosts/*.c: a program each that embeds LuaJIT. tests/fuzz/*.c: a libFuzzer target each.
TLIB_SRC := $(wildcard tests/lib/*.c)
TLIB_OBJ := $(TLIB_SRC:%.c=$(O)/obj/%.o)
UNIT_OBJ := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/unit/*.c))
TOOL_SRC := $(wildcard tests/golden/*.c tests/kernel/*.c tests/e2e/*.c tests/bench/*.c)
TOOLS := $(TOOL_SRC:%.c=$(O)/%)
HOST_SRC := $(wildcard tests/hosts/*.c)
HOSTS := $(HOST_SRC:%.c=$(O)/%)
# tests/hosts/puc/*.c: a program for each PUC Lua whose headers are installed, linked with the library.
PUC_VERSIONS := $(filter-out 5.5,$(LUA_VERSIONS))
PUC_HOSTS := $(foreach v,$(PUC_VERSIONS),$(patsubst %.c,$(O)/%-$(v),$(wildcard tests/hosts/puc/*.c)))
PUC_LUA := $(patsubst tests/hosts/puc/%,$(O)/gen/%.h,$(wildcard tests/hosts/puc/*.lua))
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZERS := $(FUZZ_SRC:%.c=$(O)/%)
TEST_OBJ := $(UNIT_OBJ) $(TLIB_OBJ) $(TOOL_SRC:%.c=$(O)/obj/%.o)

.PHONY: all
all: $(O)/luabpf $(SO) $(AGENTS) $(LUA_MODULES) ## build O/luabpf, O/lib/libluabpf.so and the Lua modules (the default)

# Rewritten only when the flags differ, so that objects depend on the flags they were made with.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL))' | \
		cmp -s - $@ 2>/dev/null || \
		printf '%s\n' '$(subst ','\'',$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL))' >$@
.PHONY: FORCE
FORCE:

# ---- BPF -----------------------------------------------------------------------------------------

$(O)/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
	$(if $(LLVM_STRIP),$(Q)$(LLVM_STRIP) -g $@)

$(O)/gen/%.skel.h: $(O)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst .,_,$*)_bpf >$@

# ---- user space ----------------------------------------------------------------------------------

# The value of LUA_INIT, as a string literal.
$(HOOK_INIT): agent/init.lua Makefile
	$(call say,LUA,$@)
	@mkdir -p $(@D)
	$(Q)echo 'static const char hook_init_code[] =' >$@
	$(Q)sed '/^--/d; s/["\\]/\\&/g; s/.*/"&\\n"/' $< >>$@
	$(Q)echo ';' >>$@

$(O)/gen/%.pb-c.c $(O)/gen/%.pb-c.h &: user/prof/%.proto
	$(call say,PROTOC,$@)
	@mkdir -p $(O)/gen
	$(Q)$(PROTOC_C) --c_out=$(O)/gen -Iuser/prof $<

$(O)/obj/gen/%.o: $(O)/gen/%.c $(O)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

$(O)/obj/%.o: %.c $(O)/flags Makefile | $(GENERATED)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(if $(filter tests/%,$<),-Itests -Itests/lib) $(CFLAGS_ALL) \
		-MMD -MP -c $< -o $@

# One set of objects for the executable and for the shared library, which exports include/luabpf.h only.
$(LIB_OBJ): private CFLAGS_ALL += -fPIC -fvisibility=hidden

# Tests are compiled once for a run of seconds, most of which the library takes.
$(UNIT_OBJ): private CFLAGS_ALL += -O0

$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/luabpf: $(O)/obj/user/main.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(SO).$(VERSION): $(SO_OBJ) $(LIB) user/api/luabpf.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -Wl,-soname,libluabpf.so.$(SO_VERSION) -Wl,--no-undefined \
		-Wl,--version-script=user/api/luabpf.map -o $@ $(SO_OBJ) $(LIB) $(LIBS)
$(SO): $(SO).$(VERSION)
	$(Q)ln -sf $(<F) $@.$(SO_VERSION) && ln -sf $(<F) $@

$(AGENTS): $(O)/lib/lua/%/luabpf/hook.so: $(AGENT_SRC) $(wildcard agent/*.h user/hook/abi.h) Makefile
	$(call say,AGENT,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE -Iuser -isystem /usr/include/lua$* -shared -fPIC \
		-fvisibility=hidden -Wl,-z,nodelete -o $@ $(AGENT_SRC) -ldl

$(LUA_MODULES): $(O)/lib/lua/%/luabpf/profile.so: lua/luabpf/profile.c include/luabpf.h $(SO) $(O)/flags Makefile
	$(call say,LUA,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -isystem /usr/include/lua$* $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fPIC -fvisibility=hidden -shared \
		-Wl,-rpath,'$$ORIGIN/../../..' -o $@ $< $(SO)

# ---- test programs -------------------------------------------------------------------------------

$(O)/libtest.a: $(TLIB_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/tests/unit/unit: $(UNIT_OBJ) $(O)/libtest.a $(LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcriterion $(LIBS)

$(TOOLS): $(O)/%: $(O)/obj/%.o $(O)/libtest.a $(LIB)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# A host is a target, not a part of luabpf: never sanitized, and it exports its symbols as hosts do.
$(HOSTS): $(O)/%: %.c tests/hosts/host.h Makefile
	$(call say,HOST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(WARN) -O2 -g -D_GNU_SOURCE $$($(PKG_CONFIG) --cflags luajit) -rdynamic \
		-o $@ $< $$($(PKG_CONFIG) --libs luajit) -lpthread -ldl -lm

# Lua code of a host is compiled in, as a string literal.
$(O)/gen/%.lua.h: tests/hosts/puc/%.lua Makefile
	$(call say,LUA,$@)
	@mkdir -p $(@D)
	$(Q)sed 's/["\\]/\\&/g; s/.*/"&\\n"/' $< >$@

# PUC Lua's headers differ by version, its library is taken as it is shipped: shared and stripped.
define puc_host
$(O)/obj/tests/hosts/puc/%-$(1).o: tests/hosts/puc/%.c $(O)/flags Makefile | $(GENERATED) $(PUC_LUA)
	$$(call say,CC,$$@)
	@mkdir -p $$(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Itests/lib -isystem /usr/include/lua$(1) $(CFLAGS_ALL) \
		-MMD -MP -c $$< -o $$@
$(O)/tests/hosts/puc/%-$(1): $(O)/obj/tests/hosts/puc/%-$(1).o $(O)/libtest.a $(LIB)
	$$(call say,HOST,$$@)
	@mkdir -p $$(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -rdynamic -o $$@ $$^ -llua$(1) $(LIBS)
endef
$(foreach v,$(PUC_VERSIONS),$(eval $(call puc_host,$(v))))

# Fuzzers need clang and coverage counters in the library, too: they have a build of their own, which
# the unit tests share that run under the sanitizers. It has the warnings of the gcc build, so that the
# library passes both compilers, and gcc's name for AddressSanitizer. Reports name lines: types and variables
# would be a quarter of the build.
FUZZ_CFLAGS := $(DIALECT) $(WARN) -O2 -gline-tables-only -fno-omit-frame-pointer -Wno-unknown-warning-option -Wno-microsoft-anon-tag \
	-Wno-missing-field-initializers $(SANITIZE) -D__SANITIZE_ADDRESS__
FUZZ_COVERAGE := -fsanitize=fuzzer-no-link
# Decoding instructions and searching traces compare so much that half of the time would go into
# recording the operands.
$(O)/fuzzobj/user/jit/%.o $(O)/fuzzobj/few_tries/user/jit/%.o $(O)/fuzzobj/user/arch/%.o $(O)/fuzzobj/user/detect/lj/%.o \
	$(O)/fuzzobj/user/lua/puc/bc.o $(O)/fuzzobj/user/lua/puc/names.o: \
	FUZZ_COVERAGE += -fno-sanitize-coverage=trace-cmp
# What builds an image is no code under test, and an image is built for the first of its inputs only.
$(O)/fuzzobj/tests/lib/lj_%.o $(O)/fuzzobj/tests/lib/puc_%.o $(O)/fuzzobj/tests/lib/scene.o \
	$(O)/fuzzobj/tests/lib/arena.o: FUZZ_COVERAGE :=
define fuzz_cc
	$(call say,FUZZCC,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(if $(filter tests/%,$<),-Itests -Itests/lib) $(FUZZ_COVERAGE) \
		$(FUZZ_CFLAGS) -MMD -MP -c $< -o $@
endef
$(O)/fuzzobj/%.o: %.c Makefile | $(GENERATED)
	$(fuzz_cc)
$(O)/fuzzobj/few_tries/%.o: %.c Makefile | $(GENERATED)
	$(fuzz_cc)
$(O)/fuzzobj/gen/%.o: $(O)/gen/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS_ALL) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@

FUZZ_LIB_OBJ := $(LIB_SRC:%.c=$(O)/fuzzobj/%.o) $(TLIB_SRC:%.c=$(O)/fuzzobj/%.o) \
	$(PROTO_C:$(O)/gen/%.c=$(O)/fuzzobj/gen/%.o)
$(O)/libfuzzed.a: $(FUZZ_LIB_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
UNIT_SAN_OBJ := $(UNIT_OBJ:$(O)/obj/%=$(O)/fuzzobj/%)
# With -O2 the tests would be two thirds of the build.
$(UNIT_SAN_OBJ): FUZZ_COVERAGE :=
$(UNIT_SAN_OBJ): FUZZ_CFLAGS += -O0
$(O)/tests/unit/unit-san: $(UNIT_SAN_OBJ) $(O)/libfuzzed.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -o $@ $^ -lcriterion $(LIBS)
$(FUZZERS): $(O)/%: $(O)/fuzzobj/%.o $(O)/libfuzzed.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
# Instead of the library's: gives up sooner, so that more traces are tried.
$(O)/tests/fuzz/lj_trace: $(O)/fuzzobj/few_tries/user/jit/search.o
$(O)/fuzzobj/few_tries/%.o: FUZZ_CFLAGS += -DTRIES_MAX=250

.PHONY: tests-build fuzz-build golden-build kernel-build bpf
tests-build: $(O)/luabpf $(if $(UNIT_OBJ),$(O)/tests/unit/unit) $(TOOLS) $(HOSTS) $(PUC_HOSTS) $(SKEL) ## build the tests, without running them
fuzz-build: $(FUZZERS)
golden-build: $(filter $(O)/tests/golden/%,$(TOOLS))
kernel-build: $(O)/luabpf $(filter $(O)/tests/kernel/%,$(TOOLS)) $(SKEL)
bpf: $(SKEL) ## build the BPF objects and their skeletons only

# ---- running -------------------------------------------------------------------------------------

RUN := O=$(abspath $(O)) MAKE="$(MAKE)" $(PYTHON) tests/run

.PHONY: check quick unit unit-san golden fuzz-short kernel e2e lint fuzz bench jit-accuracy demo deps
# For tools that read the sources alone.
.PHONY: generated
generated: $(GENERATED) $(PUC_LUA)

check: deps ## install what is missing, build, run every test (as root: kernel and e2e need it)
	$(Q)$(RUN) check
quick: ## after a small change: unit, golden, lint
	$(Q)$(RUN) quick
unit: ## unit tests (Criterion)
	$(Q)$(RUN) unit
unit-san: ## unit tests under ASan and UBSan
	$(Q)$(RUN) unit-san
golden: ## reporters: saved profiles to exact text, and against jit/p.lua
	$(Q)$(RUN) golden
fuzz-short: ## each fuzzer: its corpus and 5,000 new inputs
	$(Q)$(RUN) fuzz-short
kernel: ## BPF programs in the kernel (root)
	$(Q)$(RUN) kernel
e2e: ## real interpreters and hosts, end to end (root)
	$(Q)$(RUN) e2e
lint: ## style, include edges, licences, static analysis
	$(Q)$(RUN) lint
fuzz: ## each fuzzer for FUZZ_TIME=600 seconds
	$(Q)$(RUN) fuzz
bench: all tests-build ## measure the cost in the kernel, on the target and in user space (root)
	$(Q)O=$(abspath $(O)) $(PYTHON) tests/bench/bench.py $(ARGS)
jit-accuracy: all ## measure how much of the time is shown at the line, function and caller that had it (root)
	$(Q)O=$(abspath $(O)) $(PYTHON) tools/jit-truth/accuracy.py $(ARGS)
demo: deps ## install what is missing, build, profile a demo workload (root)
	$(Q)$(MAKE) --no-print-directory all
	$(Q)O=$(abspath $(O)) sh tools/demo.sh
deps: ## install the packages that build, tests, demo and bench need
	$(Q)sh tools/deps.sh

# ---- install -------------------------------------------------------------------------------------

MAN3 := $(wildcard docs/*.3)
# A page for each function: those that share one with another, FUNCTION=PAGE.
man3_of = $(foreach f,$(2),luabpf_$(f)=luabpf_$(1))
MAN3_LINKS := $(call man3_of,new,free attach attach_all narrow set zone_from) $(call man3_of,start,poll wait fd stop) \
	$(call man3_of,dumpstack,pid tid vm_id label) $(call man3_of,losses,samples write error version)

.PHONY: install uninstall clean help
install: all ## install into DESTDIR/PREFIX
	install -Dm755 $(O)/luabpf $(DESTDIR)$(BINDIR)/luabpf
	install -Dm644 docs/luabpf.1 $(DESTDIR)$(MANDIR)/man1/luabpf.1
	install -Dm644 -t $(DESTDIR)$(MANDIR)/man3 $(MAN3)
	for page in $(MAN3_LINKS); do \
		echo ".so man3/$${page#*=}.3" | install -Dm644 /dev/stdin $(DESTDIR)$(MANDIR)/man3/$${page%=*}.3 || exit; \
	done
	install -Dm755 $(SO).$(VERSION) $(DESTDIR)$(LIBDIR)/libluabpf.so.$(VERSION)
	ln -sf libluabpf.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libluabpf.so.$(SO_VERSION)
	ln -sf libluabpf.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libluabpf.so
	install -Dm644 include/luabpf.h $(DESTDIR)$(INCLUDEDIR)/luabpf.h
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' \
		user/api/luabpf.pc.in | install -Dm644 /dev/stdin $(DESTDIR)$(LIBDIR)/pkgconfig/luabpf.pc
	install -Dm644 tools/completions/luabpf.bash $(DESTDIR)$(COMPDIR)/luabpf
	sed 's|@BINDIR@|$(BINDIR)|' tools/systemd/luabpf.service | \
		install -Dm644 /dev/stdin $(DESTDIR)$(UNITDIR)/luabpf.service
	for v in $(LUA_VERSIONS); do \
		install -Dm755 $(O)/lib/lua/$$v/luabpf/hook.so $(DESTDIR)$(PREFIX)/lib/lua/$$v/luabpf/hook.so || exit; \
	done
	for v in 5.1 5.2 5.3 5.4 5.5; do \
		install -Dm644 lua/zone.lua $(DESTDIR)$(PREFIX)/share/lua/$$v/zone.lua || exit; \
	done
	for v in $(LUA_VERSIONS); do \
		install -Dm755 $(O)/lib/lua/$$v/luabpf/profile.so $(DESTDIR)$(LIBDIR)/lua/$$v/luabpf/profile.so || exit; \
		install -Dm644 lua/luabpf/zone.lua $(DESTDIR)$(PREFIX)/share/lua/$$v/luabpf/zone.lua || exit; \
	done
	install -Dm644 -t $(DESTDIR)$(DOCDIR) LICENSE README.md CHANGELOG.md
	install -Dm644 -t $(DESTDIR)$(DOCDIR)/docs $(wildcard docs/*.md)
	install -Dm644 -t $(DESTDIR)$(DOCDIR)/docs/decisions $(wildcard docs/decisions/*.md)
	install -Dm644 -t $(DESTDIR)$(DOCDIR)/examples $(wildcard examples/*)
	install -Dm644 -t $(DESTDIR)$(DOCDIR)/LICENSES LICENSES/BSD-2-Clause.txt LICENSES/GPL-2.0-only.txt

uninstall: ## remove what install installed
	rm -f $(DESTDIR)$(BINDIR)/luabpf $(DESTDIR)$(MANDIR)/man1/luabpf.1 \
		$(DESTDIR)$(COMPDIR)/luabpf $(DESTDIR)$(UNITDIR)/luabpf.service \
		$(DESTDIR)$(PREFIX)/share/lua/5.[1-5]/zone.lua \
		$(DESTDIR)$(PREFIX)/lib/lua/5.[1-5]/luabpf/hook.so \
		$(patsubst docs/%,$(DESTDIR)$(MANDIR)/man3/%,$(MAN3)) \
		$(foreach page,$(MAN3_LINKS),$(DESTDIR)$(MANDIR)/man3/$(firstword $(subst =, ,$(page))).3) \
		$(DESTDIR)$(LIBDIR)/libluabpf.so $(DESTDIR)$(LIBDIR)/libluabpf.so.$(SO_VERSION) \
		$(DESTDIR)$(LIBDIR)/libluabpf.so.$(VERSION) $(DESTDIR)$(LIBDIR)/pkgconfig/luabpf.pc \
		$(DESTDIR)$(INCLUDEDIR)/luabpf.h
	rm -rf $(DESTDIR)$(DOCDIR) $(DESTDIR)$(LIBDIR)/lua/5.[1-5]/luabpf $(DESTDIR)$(PREFIX)/share/lua/5.[1-5]/luabpf

clean: ## remove what was built
	rm -rf $(O)

help: ## this list
	@printf 'Targets:\n'
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16
	@printf 'Variables: O=DIR V=1 SAN=1 COVERAGE=1 PREFIX=%s DESTDIR=\n' '$(PREFIX)'

# The dependency files; a missing one means that its object is yet to be built.
-include $(wildcard $(LIB_OBJ:.o=.d) $(TEST_OBJ:.o=.d) $(O)/obj/user/main.d $(O)/obj/tests/hosts/puc/*.d $(O)/bpf/*.d \
	$(FUZZ_LIB_OBJ:.o=.d) $(UNIT_SAN_OBJ:.o=.d) $(FUZZ_SRC:%.c=$(O)/fuzzobj/%.d) $(O)/fuzzobj/few_tries/user/jit/search.d)

# Keep objects that only a pattern rule mentions.
.SECONDARY:

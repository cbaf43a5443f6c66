# fast_uuid: build with "make", install with "sudo make install".
#
#   PG_CONFIG=/path/to/pg_config   the server to build for
#   WITH_OPENSSL=no                build without the entropy source "openssl"
#
# "make install" needs the same ones: what was built otherwise is built again.
#
# "make installcheck" tests an installed build on a running server; TAP_TESTS=
# leaves out what needs Perl's modules.  script/test installs nothing and needs
# no server.  "make -f .../Makefile" builds in another directory.

EXTENSION = fast_uuid
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(checkout)/fast_uuid.control)

checkout := $(patsubst %/,%,$(or $(VPATH),$(dir $(firstword $(MAKEFILE_LIST)))))
files = $(sort $(patsubst $(checkout)/%,%,$(wildcard $(addprefix $(checkout)/,$(1)))))

MODULE_big = fast_uuid
OBJS = $(patsubst %.c,%.o,$(call files,src/*.c src/*/*.c))
# Not HEADERS, which PGXS would install.
OUR_HEADERS = $(call files,src/*.h src/*/*.h)
DATA = $(call files,sql/fast_uuid--*.sql)

PG_CPPFLAGS = -I$(srcdir)/src -DFUUID_VERSION='"$(EXTVERSION)"'
WITH_OPENSSL ?= yes
ifneq ($(WITH_OPENSSL),no)
PG_CPPFLAGS += -DFUUID_WITH_OPENSSL
SHLIB_LINK += -lcrypto
endif

# For tests alone: src/test_point.h, and the assertions.
ifeq ($(TEST_POINTS),yes)
PG_CPPFLAGS += -DFUUID_TEST_POINTS
endif
ifeq ($(ASSERTIONS),yes)
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING
endif

REGRESS = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --load-extension=fast_uuid
TAP_TESTS = 1
PROVE_TESTS = test/t/*/*.pl

UNIT_TESTS = $(patsubst %.c,%,$(sort $(wildcard test/unit/test_*.c)))
# The vDSO is found by the C library, so its lookup is tested with musl as well.
MUSL_TEST = test/unit/test_vdso.musl
TEST_MODULES = $(patsubst %.c,%.so,$(wildcard test/modules/*.c))
BENCH_MODULES = bench/noop.so
SERVER_STAMP = .built_for
LIBRARY_STAMP = .built_with
EXTRA_CLEAN = $(UNIT_TESTS) $(MUSL_TEST) $(TEST_MODULES) $(BENCH_MODULES) fast_uuid-*.zip \
	$(SERVER_STAMP) $(LIBRARY_STAMP)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
PG_MAJOR = $(shell $(PG_CONFIG) --version 2>/dev/null | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
define no_server_headers
	@echo "fast_uuid: \"$(PG_CONFIG)\" knows of no PostgreSQL server headers." >&2
	@echo "Install them (Debian, Ubuntu: apt install postgresql-server-dev-$(or $(PG_MAJOR),all); Fedora, RHEL: dnf install postgresql-server-devel)" >&2
	@echo "or name another server's: make PG_CONFIG=/path/to/pg_config" >&2
	@exit 1
endef

ifeq ($(wildcard $(PGXS)),)
all .DEFAULT:
	$(no_server_headers)
.PHONY: all
else
include $(PGXS)

# With several servers, which one it is.
all: which-server
which-server: all-lib $(if $(filter yes,$(with_llvm)),$(OBJS:.o=.bc))
	@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,echo "fast_uuid for PostgreSQL $(VERSION) ($$(command -v $(PG_CONFIG)))")

$(OBJS) $(OBJS:.o=.bc): $(OUR_HEADERS) Makefile $(SERVER_STAMP) $(LIBRARY_STAMP)

# make compares times alone.  So the server that was built for, and the flags, are kept
# in files, which are written when they change.
$(SERVER_STAMP): stamp = $(VERSION) $(includedir_server) $(CC) $(CFLAGS)
$(LIBRARY_STAMP): stamp = $(PG_CPPFLAGS) $(SHLIB_LINK)
$(SERVER_STAMP) $(LIBRARY_STAMP): always | server-headers
	@[ "$$(cat $@ 2>/dev/null)" = '$(subst ','\'',$(strip $(stamp)))' ] || { \
	  [ -w . ] || { echo "fast_uuid: $(CURDIR) cannot be written to. Build in another directory:" \
	    "make -f $(abspath $(checkout))/Makefile" >&2; exit 1; }; \
	  mkdir -p $(sort $(dir $(OBJS))); \
	  [ ! -e $@ ] || echo "fast_uuid: built for another server or with other flags before: building again"; \
	  printf '%s\n' '$(subst ','\'',$(strip $(stamp)))' >$@; }

# Debian has PGXS in the client's package, which is enough to test an installation.
server-headers:
ifeq ($(wildcard $(includedir_server)/postgres.h),)
	$(no_server_headers)
endif

src/entropy/openssl.o src/entropy/openssl.bc: | openssl-headers
openssl-headers: | server-headers
ifneq ($(WITH_OPENSSL),no)
	@! command -v $(firstword $(CC)) >/dev/null || echo '#include <openssl/rand.h>' | $(CC) $(CFLAGS) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 || \
	  { echo "fast_uuid: the headers of OpenSSL are missing. Install them (Debian, Ubuntu:" \
	    "apt install libssl-dev; Fedora, RHEL: dnf install openssl-devel)" \
	    "or build without: make WITH_OPENSSL=no" >&2; exit 1; }
endif

# What has paths of the checkout
in-checkout:
ifneq ($(abspath $(checkout)),$(CURDIR))
	@echo "fast_uuid: this works in the checkout alone: make -C $(checkout)" >&2; exit 1
endif
warnings prove installed test-modules benchmark: | in-checkout

# PGXS installs bitcode with the umask of whoever does it, and the server must read it.
define install_llvm_module +=

chmod -R a+rX '$(DESTDIR)$(bitcodedir)/$(1)' '$(DESTDIR)$(bitcodedir)/$(1).index.bc'
endef

# The sources under both compilers, with every warning an error.  The server's
# headers count as system headers, and its own compiler flags are left out, but for
# the one by which clang ignores the server's attribute gnu_printf.
STRICT = -O2 -Wall -Wextra -Werror -Wno-ignored-attributes $(PG_CPPFLAGS) -D_GNU_SOURCE -isystem $(includedir_server)
WARNING_FILES = $(OBJS:.o=.c) $(TEST_MODULES:.so=.c) $(wildcard bench/*.c)
warnings:
	@for cc in gcc clang; do \
	  for file in $(WARNING_FILES); do \
	    $$cc $(STRICT) -c -o /dev/null $$file || exit 1; \
	  done; \
	  echo "$$cc: no warning in $(words $(WARNING_FILES)) files"; \
	done

# What needs no server, under the sanitizers.
unit: prove $(UNIT_TESTS)
	$(PROVE) --exec '' $(UNIT_TESTS)
	@if command -v musl-gcc >/dev/null; then $(MAKE) -s $(MUSL_TEST) && $(PROVE) --exec '' $(MUSL_TEST); \
	  else echo "without musl-gcc (Debian, Ubuntu: musl-tools): test_vdso ran with this C library alone"; fi
$(MUSL_TEST): %.musl: %.c src/common/vdso_getrandom.h test/unit/tap.h
	musl-gcc -g -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -o $@ $<
$(UNIT_TESTS): %: %.c $(OUR_HEADERS) $(OBJS:.o=.c) $(wildcard test/unit/*.h) $(SERVER_STAMP)
	$(CC) -g $(STRICT) -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $< -ldl

# What the tests need of Perl, asked for before the first one runs.
PROVE ?= prove
missing = { echo "fast_uuid: the tests need $(1), which is not there. Install it" \
	    "(Debian, Ubuntu: apt install $(2); Fedora, RHEL: dnf install $(3))" >&2; exit 1; }
prove:
	@command -v $(PROVE) >/dev/null || $(call missing,prove,perl,perl-Test-Harness)
perl-modules: prove
	@$(PERL) -MTest::More -e 1 2>/dev/null || $(call missing,Perl's Test::More,perl,perl-Test-Simple)
	@$(PERL) -MIPC::Run -e 1 2>/dev/null || $(call missing,Perl's IPC::Run,libipc-run-perl,perl-IPC-Run)

# Libraries that only test/t and the benchmark load into their servers.
test-modules: $(TEST_MODULES)
$(TEST_MODULES) $(BENCH_MODULES): %.so: %.c $(SERVER_STAMP)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(CFLAGS_SL) -shared -o $@ $<
# Before anything is built for them.
installcheck: installed
ifneq ($(TAP_TESTS),)
installcheck: perl-modules test-modules
endif
installed:
	@sh test/installed.sh "$(PG_CONFIG)" "$(REGRESS)"
benchmark: $(BENCH_MODULES)

.PHONY: always in-checkout which-server server-headers openssl-headers warnings unit prove perl-modules test-modules installed benchmark
endif

# fast_uuid: build with "make", install with "sudo make install".
#
#   PG_CONFIG=/path/to/pg_config   the server to build for
#   WITH_OPENSSL=no                build without the entropy source "openssl"
#
# "make install" needs the same ones: what was built otherwise is built again.
# "make installcheck" tests an installed build on a running server; TAP_TESTS=
# leaves out what needs Perl's modules.  script/test installs nothing and needs
# no server.  "make -f .../Makefile" builds in another directory.

EXTENSION = fast_uuid
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(checkout)/fast_uuid.control)

checkout := $(patsubst %/,%,$(or $(VPATH),$(dir $(firstword $(MAKEFILE_LIST)))))
files = $(sort $(patsubst $(checkout)/%,%,$(wildcard $(addprefix $(checkout)/,$(1)))))

# PGXS says it only where the server itself was built so.
ifneq ($(abspath $(checkout)),$(CURDIR))
VPATH ?= $(checkout)
endif

MODULE_big = fast_uuid
OBJS = $(patsubst %.c,%.o,$(call files,src/*.c src/*/*.c))
# Not HEADERS, which PGXS would install.
OUR_HEADERS = $(call files,src/*.h src/*/*.h)
DATA = $(call files,sql/*.sql)

PG_CPPFLAGS = -I$(srcdir)/src -DFUUID_VERSION='"$(EXTVERSION)"'
WITH_OPENSSL ?= yes
ifneq ($(WITH_OPENSSL),no)
PG_CPPFLAGS += -DFUUID_WITH_OPENSSL
SHLIB_LINK += -lcrypto
endif

# For tests alone
PG_CPPFLAGS += $(if $(filter yes,$(ASSERTIONS)),-DUSE_ASSERT_CHECKING)

REGRESS = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --load-extension=fast_uuid
TAP_TESTS = 1
PROVE_TESTS = test/t/*/*.pl

# The vDSO is found by the C library, so its lookup is tested with musl as well.
UNIT_TESTS = $(patsubst %.c,%,$(sort $(wildcard test/unit/test_*.c))) \
	$(if $(shell command -v musl-gcc),test/unit/test_vdso.musl)
TEST_MODULES = $(patsubst %.c,%.so,$(wildcard test/modules/*.c))
STAMP = .built_for
EXTRA_CLEAN = $(UNIT_TESTS) $(TEST_MODULES) bench/noop.so fast_feed-*.zip fast_uuid-*.zip $(STAMP)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
PG_MAJOR = $(shell $(PG_CONFIG) --version 2>/dev/null | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
no_server_headers = @echo "fast_uuid: \"$(PG_CONFIG)\" knows of no PostgreSQL server headers. Install them (Debian," \
	"Ubuntu: apt install postgresql-server-dev-$(or $(PG_MAJOR),all); Fedora, RHEL: dnf install" \
	"postgresql-server-devel) or name another server's: make PG_CONFIG=/path/to/pg_config" >&2; exit 1

ifeq ($(wildcard $(PGXS)),)
all .DEFAULT:
	$(no_server_headers)
else
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(OUR_HEADERS) Makefile $(STAMP)

# make compares times alone.  So the server that was built for, and the flags, are kept
# in a file, which is written when they change.
built_for = $(subst ','\'',$(VERSION) $(includedir_server) $(CC) $(strip $(CFLAGS) $(PG_CPPFLAGS) $(SHLIB_LINK)))
$(STAMP): always | headers
	@mkdir -p $(sort $(dir $(OBJS)))
	@[ "$$(cat $@ 2>/dev/null)" = '$(built_for)' ] || printf '%s\n' '$(built_for)' >$@

# Debian has PGXS in the client's package, which is enough to test an installation.
headers:
	$(if $(wildcard $(includedir_server)/postgres.h),,$(no_server_headers))
	@[ "$(WITH_OPENSSL)" = no ] || echo '#include <openssl/rand.h>' | $(CC) $(CFLAGS) $(CPPFLAGS) -E - >/dev/null || \
	  { echo "fast_uuid: are the headers of OpenSSL missing? Install them (Debian, Ubuntu: apt install libssl-dev;" \
	    "Fedora, RHEL: dnf install openssl-devel) or build without: make WITH_OPENSSL=no" >&2; exit 1; }

# The sources under both compilers, with every warning an error, but for those of the
# server's headers, and clang's of the server's attribute gnu_printf.
WERROR = -Werror
STRICT = -O2 -Wall -Wextra $(WERROR) -Wno-ignored-attributes $(PG_CPPFLAGS) -D_GNU_SOURCE -isystem $(includedir_server)
warnings:
	for cc in gcc clang; do for file in $(OBJS:.o=.c) $(TEST_MODULES:.so=.c) $(wildcard bench/*.c); do \
	  $$cc $(STRICT) -c -o /dev/null $$file || exit 1; done; done

# What needs no server, under the sanitizers.
PROVE ?= prove
unit: $(UNIT_TESTS)
	$(PROVE) --exec '' $(UNIT_TESTS)
test/unit/%: test/unit/%.c $(OUR_HEADERS) $(OBJS:.o=.c) $(wildcard test/unit/*.h) $(STAMP)
	$(CC) -g $(STRICT) -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $< -ldl
test/unit/%.musl: test/unit/%.c src/common/vdso_getrandom.h test/unit/tap.h
	musl-gcc -g -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -Isrc -o $@ $<

# Libraries that only test/t and the benchmark load into their servers
test-modules: $(TEST_MODULES)
benchmark: bench/noop.so
$(TEST_MODULES) bench/noop.so: %.so: %.c $(STAMP)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(CFLAGS_SL) -shared -o $@ $<

installcheck: installed $(if $(TAP_TESTS),perl-modules test-modules)
installed:
	@sh test/installed.sh "$(PG_CONFIG)" "$(REGRESS)"
perl-modules:
	@command -v $(PROVE) >/dev/null && $(PERL) -MTest::More -MIPC::Run -e 1 2>/dev/null || \
	  { echo "fast_uuid: the tests need prove, and Perl's Test::More and IPC::Run. Install them (Debian, Ubuntu:" \
	    "apt install perl libipc-run-perl; Fedora, RHEL: dnf install perl-Test-Harness perl-IPC-Run)" >&2; exit 1; }

.PHONY: always headers warnings unit perl-modules test-modules installed benchmark
endif

# fast_uuid: build with "make", install with "sudo make install".
#
#   PG_CONFIG=/path/to/pg_config   the server to build for
#   WITH_OPENSSL=no                build without the entropy source "openssl"
#                                  ("make clean" first if it was built with it)
#
# "make installcheck" tests an installed build on a running server;
# script/test installs nothing and needs no server.

EXTENSION = fast_uuid
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" fast_uuid.control)

MODULE_big = fast_uuid
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
DATA = $(wildcard sql/fast_uuid--*.sql)

PG_CPPFLAGS = -DFU_VERSION='"$(EXTVERSION)"'
WITH_OPENSSL ?= yes
ifneq ($(WITH_OPENSSL),no)
PG_CPPFLAGS += -DFU_WITH_OPENSSL
SHLIB_LINK += -lcrypto
endif

REGRESS = $(sort $(patsubst test/sql/%.sql,%,$(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --load-extension=fast_uuid
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

UNIT_TESTS = $(patsubst %.c,%,$(sort $(wildcard test/unit/test_*.c)))
TEST_MODULES = $(patsubst %.c,%.so,$(wildcard test/modules/*.c))
BENCH_MODULES = bench/noop.so
EXTRA_CLEAN = $(UNIT_TESTS) $(TEST_MODULES) $(BENCH_MODULES) bench/xorshift

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

ifeq ($(wildcard $(PGXS)),)
PG_MAJOR := $(shell $(PG_CONFIG) --version 2>/dev/null | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
all .DEFAULT:
	@echo "fast_uuid: \"$(PG_CONFIG)\" knows of no PostgreSQL server headers." >&2
	@echo "Install them (Debian, Ubuntu: apt install postgresql-server-dev-$(or $(PG_MAJOR),all); Fedora, RHEL: dnf install postgresql-server-devel)" >&2
	@echo "or name another server's: make PG_CONFIG=/path/to/pg_config" >&2
	@exit 1
.PHONY: all
else
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*.h) Makefile

src/entropy_openssl.o: | openssl-headers
openssl-headers:
ifneq ($(WITH_OPENSSL),no)
	@echo '#include <openssl/rand.h>' | $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 || \
	  { echo "fast_uuid: the headers of OpenSSL are missing. Install them (Debian, Ubuntu:" \
	    "apt install libssl-dev; Fedora, RHEL: dnf install openssl-devel)" \
	    "or build without: make WITH_OPENSSL=no" >&2; exit 1; }
endif

# The sources under both compilers, with every warning an error.  The server's
# headers count as system headers, and its own compiler flags are left out.
STRICT = -O2 -Wall -Wextra -Werror $(PG_CPPFLAGS) -D_GNU_SOURCE -isystem $(includedir_server)
WARNING_FILES = $(OBJS:.o=.c) $(TEST_MODULES:.so=.c) $(wildcard bench/*.c)
warnings:
	@for cc in gcc clang; do \
	  for file in $(WARNING_FILES); do \
	    $$cc $(STRICT) -Isrc -c -o /dev/null $$file || exit 1; \
	  done; \
	  echo "$$cc: no warning in $(words $(WARNING_FILES)) files"; \
	done

# The pure parts, without a server, under the sanitizers.
unit: $(UNIT_TESTS)
	prove --exec '' $(UNIT_TESTS)
$(UNIT_TESTS): %: %.c $(wildcard src/*.[ch] test/unit/*.h)
	$(CC) -g $(STRICT) -fsanitize=address,undefined -fno-sanitize-recover=all -Isrc -o $@ $<

# Libraries that only test/t and the benchmark load into their servers.
test-modules: $(TEST_MODULES)
$(TEST_MODULES) $(BENCH_MODULES): %.so: %.c
	$(CC) $(CFLAGS) $(CPPFLAGS) $(CFLAGS_SL) -shared -o $@ $<
installcheck: test-modules
bench/xorshift: bench/xorshift.c $(wildcard src/*.h)
	$(CC) $(CFLAGS) $(CPPFLAGS) -Isrc -o $@ $<

.PHONY: openssl-headers warnings unit test-modules
endif

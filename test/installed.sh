# Before "make installcheck": is what it tests there?  One sentence about what is missing,
# instead of psql's in the middle of a test.
#
#   installed.sh PG_CONFIG SQL    SQL: are there SQL tests, which use the running server?

pg_config=$1
bindir=$("$pg_config" --bindir)
library=$("$pg_config" --pkglibdir)/fast_uuid.so
missing="not installed: make && sudo make install, with the same PG_CONFIG=..., comes first"

refuse()
{
	echo "fast_uuid: $*" >&2
	exit 1
}

# script/test says by this where the servers find it.
[ -z "${TEMP_CONFIG:-}" ] || exit 0
if [ -n "$2" ]; then
	# Why there is no connection, pg_regress says well enough.
	running=$("$bindir/psql" -XAtqd postgres -c "SHOW server_version_num" 2>/dev/null) || exit 0
	version=$("$pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	[ "$((running / 10000))" = "$version" ] ||
		refuse "the running server is PostgreSQL $((running / 10000)), $pg_config is of $version: name the right one" \
			"with PG_CONFIG=..., or its server with PGHOST and PGPORT"
	# Debian's extension_destdir counts here, but not in pg_available_extensions.
	case $("$bindir/psql" -Xqd postgres -v VERBOSITY=sqlstate -c BEGIN \
		-c 'CREATE EXTENSION IF NOT EXISTS fast_uuid' -c ROLLBACK 2>&1) in
		*0A000* | *58P01*) refuse "$missing" ;;
	esac
	[ "$("$bindir/psql" -XAtqd postgres -c "SHOW dynamic_library_path")" = '$libdir' ] || exit 0
elif [ ! -e "$("$pg_config" --sharedir)/extension/fast_uuid.control" ]; then
	refuse "$missing"
fi
[ ! -e fast_uuid.so ] || [ ! -e "$library" ] || cmp -s fast_uuid.so "$library" ||
	echo "fast_uuid: testing $library, which is another build than the one here (sudo make install)" >&2

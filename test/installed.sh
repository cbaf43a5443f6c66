# Before "make installcheck": is what it tests there?  One sentence about what is missing,
# instead of psql's in the middle of a test.
#
#   installed.sh PG_CONFIG SQL    SQL: are there SQL tests, which use the running server?

pg_config=$1
sql=$2
bindir=$("$pg_config" --bindir)
version=$("$pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
control=$("$pg_config" --sharedir)/extension/fast_uuid.control
path='$libdir'

refuse()
{
	echo "fast_uuid: $*" >&2
	exit 1
}

ask()
{
	"$bindir/psql" -XAtqd postgres -c "$1" 2>/dev/null
}

if [ -n "$sql" ]; then
	# Why there is no connection, pg_regress says well enough.
	running=$(ask "SHOW server_version_num") || exit 0
	[ "$((running / 10000))" = "$version" ] ||
		refuse "the running server is PostgreSQL $((running / 10000)), $pg_config is of $version: name the right one" \
			"with PG_CONFIG=..., or its server with PGHOST and PGPORT"
	# Debian's extension_destdir counts here, but not in pg_available_extensions.
	answer=$("$bindir/psql" -Xqd postgres -v VERBOSITY=sqlstate -c BEGIN -c 'CREATE EXTENSION IF NOT EXISTS fast_uuid' \
		-c ROLLBACK 2>&1)
	case $answer in
		*0A000* | *58P01*)
			refuse "not installed on the running server: make && sudo make install, with the same PG_CONFIG=..., comes first" ;;
	esac
	path=$(ask "SHOW dynamic_library_path") || exit 0
elif [ -z "${TEMP_CONFIG:-}" ] && [ ! -e "$control" ]; then
	refuse "not installed: make && sudo make install, with the same PG_CONFIG=..., comes first"
fi

# Where a server of this machine finds the library, if it finds one.
[ -e fast_uuid.so ] && [ -z "${TEMP_CONFIG:-}" ] || exit 0
IFS=:
set -f
for directory in $path; do
	case $directory in
		'$libdir' | '$libdir/'*) directory=$("$pg_config" --pkglibdir)${directory#'$libdir'} ;;
	esac
	if [ -e "$directory/fast_uuid.so" ]; then
		cmp -s fast_uuid.so "$directory/fast_uuid.so" ||
			echo "fast_uuid: testing $directory/fast_uuid.so, which is another build than the one here (sudo make install)" >&2
		break
	fi
done

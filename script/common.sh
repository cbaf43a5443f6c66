# What the scripts of this folder share; sourced by them.
#
# They work on a copy of this checkout, in one directory below /tmp that is
# removed at the end.  The server finds the extension in there, so that nothing
# is installed beside the packages that are needed to build and run it.

set -euo pipefail
trap 'echo "$(basename "$0"): failed: $BASH_COMMAND" >&2' ERR

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)
no_cluster=/etc/postgresql-common/createcluster.d/fast_uuid_script.conf

say()
{
	printf '\n==> %s\n' "$*"
}

die()
{
	printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# usage STATUS: print the comment at the head of the script, and exit
usage()
{
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
	exit "$1"
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "packages must be installed: run this as root, or install sudo"
	fi
}

# A mirror that fails once is asked again.
apt_get()
{
	local try
	for try in 1 2 3; do
		as_root env DEBIAN_FRONTEND=noninteractive \
			apt-get -qy -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" && return
		echo "apt-get $1 failed (attempt $try of 3)"
	done
	die "apt-get $* failed"
}

is_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages PACKAGE...: those that are missing
install_packages()
{
	local package missing=()
	for package; do
		is_installed "$package" || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null ||
		die "this script installs Debian and Ubuntu packages; elsewhere: make && sudo make install && make installcheck"
	say "Installing ${missing[*]}"
	apt_get update
	apt_get install --no-install-recommends "${missing[@]}"
}

# The server to work with: $PG_VERSION, else the newest that is installed, else
# the distribution's own.
find_version()
{
	version=${PG_VERSION:-}
	if [ -z "$version" ]; then
		version=$(find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null | cut -d / -f 5 | sort -n | tail -n 1 || true)
	fi
	if [ -z "$version" ]; then
		version=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
	fi
	[ -n "$version" ] || die "found no PostgreSQL server, neither installed nor in the distribution"
	export PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
}

# install_server PACKAGE...: the server, what builds the extension for it, and
# these; %v in a name is the server's version
install_server()
{
	install_packages postgresql-common
	find_version
	if ! is_installed "postgresql-$version"; then
		# Keep the package from creating and starting a server of its own.
		trap allow_cluster EXIT
		as_root mkdir -p "$(dirname "$no_cluster")"
		as_root sh -c "echo 'create_main_cluster = false' > $no_cluster"
	fi
	install_packages gcc make libssl-dev "postgresql-$version" "postgresql-server-dev-$version" "${@//%v/$version}"
	if [ -e "$no_cluster" ]; then
		allow_cluster
		trap - EXIT
	fi
}

# install_where_available PACKAGE...: those that the distribution has, for tests
# that are skipped without them
install_where_available()
{
	local package
	for package in "${@//%v/$version}"; do
		if apt-cache show "$package" >/dev/null 2>&1; then
			install_packages "$package"
		fi
	done
}

allow_cluster()
{
	as_root rm -f "$no_cluster"
	as_root rmdir --ignore-fail-on-non-empty "$(dirname "$no_cluster")"
}

# Run in the copy, as a user who may run a server.
as_user()
{
	local clean=(env -u MAKEFLAGS -u MAKELEVEL HOME="$work" TMPDIR="$work/tmp" LC_ALL=C.UTF-8)
	if [ "$(id -u)" = 0 ]; then
		runuser -u postgres -- "${clean[@]}" USER=postgres LOGNAME=postgres "$@"
	else
		"${clean[@]}" "$@"
	fi
}

# build_copy [VARIABLE=VALUE]...: copy the checkout, build it (with these for
# make) and install it below the copy
build_copy()
{
	say "Building for PostgreSQL $version in a copy of this checkout"
	work=$(mktemp -d /tmp/fast_uuid.XXXXXX)
	trap 'rm -rf "$work"' EXIT
	mkdir "$work/source" "$work/tmp"
	tar -C "$top" --exclude=./.git -cf - . | tar -C "$work/source" --no-same-owner -xf -
	if [ "$(id -u)" = 0 ]; then
		chown -R postgres: "$work"
	fi
	cd "$work/source"
	as_user make -s clean
	as_user make -s -j "$jobs" "$@"
	as_user make -s install DESTDIR="$work/install" "$@"
}

# Settings, one a line, by which a server finds the extension below the copy.
server_settings()
{
	local installed=$work/install
	if grep -qs extension_destdir "/usr/share/postgresql/$version/postgresql.conf.sample"; then
		echo "extension_destdir=$installed"
	elif [ "$version" -ge 18 ]; then
		echo "extension_control_path=$installed$("$PG_CONFIG" --sharedir):\$system"
	else
		die "this PostgreSQL $version is not Debian's or Ubuntu's: use make && sudo make install && make installcheck"
	fi
	echo "dynamic_library_path=$installed$("$PG_CONFIG" --pkglibdir):\$libdir"
}

# The same as lines of postgresql.conf.
server_conf()
{
	server_settings | sed "s/=\(.*\)/ = '\1'/"
}

# with_server [-o SETTING=VALUE]... COMMAND...: beside a throwaway server, which
# psql finds by itself
with_server()
{
	local settings option options=()
	while [ "$1" = -o ]; do
		options+=(-o "$2")
		shift 2
	done
	settings=$(server_settings)
	while read -r option; do
		options+=(-o "$option")
	done <<<"$settings"
	as_user pg_virtualenv -v "$version" "${options[@]}" "$@"
}

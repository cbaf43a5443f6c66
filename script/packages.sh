# What the scripts of this folder install: packages of Debian or Ubuntu, by apt-get.
# Sourced by common.sh.

no_cluster=/etc/postgresql-common/createcluster.d/fast_uuid_script.conf

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

# apt-get itself asks a mirror that fails again, and waits longer each time.
apt_get()
{
	as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
		apt-get -qy -o Acquire::Retries=3 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

is_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# is_offered PACKAGE[/SUITE]: do the lists of packages have it?
is_offered()
{
	apt-cache show "${1%/*}" >/dev/null 2>&1
}

# What apt-get complained of latest; removed at the end.
apt_log=''

# apt_reasons FILE: what apt-get has said there that went wrong, each thing once
apt_reasons()
{
	sed -nE 's/^[WE]: Failed to fetch [^ ]+ +//p; t; s/^E: //p' "$1" |
		grep -vE '^(Some index files|Unable to fetch some archives|$)' | awk '!seen[$0]++' | head -n 3
}

# no_mirror WHAT: the end of a script that could not fetch it
no_mirror()
{
	die "$1 could not be fetched: there is no network here, or the mirror in apt's sources does not answer.
apt-get said: ${reasons:-nothing}"
}

# Bring the lists of packages up to date, once.  One mirror of several that fails does
# no harm as long as the others have what is needed.
lists='' reasons=''
refresh_lists()
{
	[ -z "$lists" ] || return 0
	say "Asking the mirrors for their lists of packages (seconds; two minutes where none answers)"
	as_root true || die "packages must be installed, and sudo does not permit it"
	apt_log=${apt_log:-$(mktemp)}
	apt_get update >"$apt_log" 2>&1 || true
	lists=fetched
	grep -qE '^(Hit|Get):' "$apt_log" || lists=unreachable
	reasons=$(apt_reasons "$apt_log" || true)
}

# install_packages PACKAGE[?]...: those that are missing; one with a question mark only
# where the distribution has it
install_packages()
{
	local package missing=() wanted=() unknown=() size status=0
	for package; do
		is_installed "${package%\?}" || missing+=("$package")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null ||
		die "this script installs Debian and Ubuntu packages; elsewhere: make && sudo make install && make installcheck"
	for package in "${missing[@]}"; do
		if [[ $package != *\? ]] || is_offered "${package%\?}"; then
			refresh_lists
		fi
	done
	for package in "${missing[@]}"; do
		if is_offered "${package%\?}"; then
			wanted+=("${package%\?}")
		elif [[ $package != *\? ]]; then
			unknown+=("$package")
		fi
	done
	if [ ${#unknown[@]} -gt 0 ]; then
		[ "$lists" = fetched ] || no_mirror "${unknown[*]}"
		die "this distribution does not have: ${unknown[*]}"
	fi
	[ ${#wanted[@]} -gt 0 ] || return 0

	apt_log=${apt_log:-$(mktemp)}
	size=$(apt_get install --no-install-recommends --print-uris "${wanted[@]}" 2>"$apt_log" |
		sed -n 's/^Need to get \(.*\) of archives.*/\1/p') || die "apt-get cannot install ${wanted[*]}: $(apt_reasons "$apt_log")"
	size=${size:-0 B}
	[ "$lists" = fetched ] || [[ $size = 0\ B* ]] || no_mirror "${wanted[*]}"
	say "Installing ${wanted[*]}, and what they need: $size to fetch"
	# Without the list of all names, and without a line for each address that fails.
	apt_get install --no-install-recommends "${wanted[@]}" 2>"$apt_log" |
		(trap '' INT; exec sed -u '/^\(Ign\|Err\):/d; /^  /d') || status=$?
	if [ "$status" != 0 ]; then
		reasons=$(apt_reasons "$apt_log" || true)
		! grep -q '^E: Failed to fetch' "$apt_log" || no_mirror "some of the packages"
		die "apt-get could not install ${wanted[*]}:
$reasons"
	fi
}

# The newest server that is installed; nothing where there is none.
newest_installed()
{
	find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null | cut -d / -f 5 | sort -n | tail -n 1 || true
}

# The server to work with: $PG_VERSION, else the newest that is installed, else
# the distribution's own.
find_version()
{
	version=${PG_VERSION:-}
	if [ -z "$version" ]; then
		version=$(newest_installed)
	fi
	if [ -z "$version" ]; then
		is_offered postgresql || refresh_lists
		version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1 || true)
		[ -n "$version" ] || [ "$lists" != unreachable ] || no_mirror "a PostgreSQL server"
	fi
	[ -n "$version" ] || die "found no PostgreSQL server, neither installed nor in the distribution"
	export PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
}

# A version that was asked for and is not here, before anything is installed.
check_offered()
{
	local versions
	if is_installed "postgresql-$version" || is_offered "postgresql-$version"; then
		return
	fi
	refresh_lists
	if ! is_offered "postgresql-$version"; then
		[ "$lists" = fetched ] || no_mirror "postgresql-$version"
		versions=$(apt-cache search --names-only '^postgresql-[0-9]+$' |
			sed 's/^postgresql-\([0-9]*\) .*/\1/' | sort -n | awk -v oldest="$oldest" '$1 >= oldest' | xargs)
		die "there is no package of PostgreSQL $version here; PG_VERSION can be ${versions:-none}.
PostgreSQL's own repository has all versions: https://wiki.postgresql.org/wiki/Apt"
	fi
}

# install_server PACKAGE[?]...: the server, what builds the extension for it, and
# these; %v in a name is the server's version
server_installed=
install_server()
{
	command -v apt-get >/dev/null || install_packages postgresql-common
	find_version
	check_offered
	if ! is_installed "postgresql-$version"; then
		# Keep the package from creating and starting a server of its own.
		server_installed=$version
		as_root mkdir -p "$(dirname "$no_cluster")"
		as_root sh -c "echo 'create_main_cluster = false' > $no_cluster"
	fi
	install_packages postgresql-common gcc make libssl-dev "postgresql-$version" "postgresql-server-dev-$version" "${@//%v/$version}"
	allow_cluster
}

allow_cluster()
{
	[ -e "$no_cluster" ] || return 0
	as_root rm -f "$no_cluster"
	as_root rmdir --ignore-fail-on-non-empty "$(dirname "$no_cluster")"
}

# The package makes a server of its own only when it is first configured.
tell_of_server()
{
	if [ -n "$server_installed" ] && is_installed "postgresql-$server_installed" &&
		[ -z "$(pg_lsclusters -h 2>/dev/null | grep "^$server_installed " || true)" ]; then
		printf '%s\n' "" "The package postgresql-$server_installed is installed, but has no server of its own yet." \
			"To have one: sudo pg_createcluster $server_installed main --start"
	fi
}

# What the scripts of this folder install: packages of Debian or Ubuntu, by apt-get, which
# says itself what it fetches and does, and why it cannot.  Sourced by common.sh.

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

# It has nobody to ask what to do with a file in /etc that was changed: that one stays.
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qy -o Acquire::Retries=3
	-o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o DPkg::Lock::Timeout=300
	-o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold -o Dpkg::Use-Pty=0)
apt_get()
{
	as_root "${apt[@]}" "$@" </dev/null
}

# apt_failed STATUS WHAT: a signal that apt-get has received was for this script as well
apt_failed()
{
	[ "$1" -le 128 ] || exit "$1"
	die "$2; above, what apt-get said. Is there a network here?"
}

is_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# is_offered PACKAGE: do the lists of packages have it?
is_offered()
{
	apt-cache show "$1" >/dev/null 2>&1
}

# Once; one mirror of several that fails does no harm as long as others have what is needed.
lists=''
update_lists()
{
	[ -z "$lists" ] || return 0
	command -v apt-get >/dev/null ||
		die "this script installs Debian and Ubuntu packages; elsewhere: make && sudo make install && make installcheck"
	as_root true || die "packages must be installed, and sudo does not permit it"
	say "Asking the mirrors for their lists of packages (seconds; two minutes where none answers)"
	apt_get update || [ $? -le 128 ] || exit 130
	lists=updated
}

# missing_of PACKAGE[?]...: those that are not installed; one with a question mark only
# where the distribution has it
missing_of()
{
	local package
	for package; do
		is_installed "${package%\?}" || { [[ $package = *\? ]] && ! is_offered "${package%\?}"; } ||
			echo "${package%\?}"
	done
}

# install_packages PACKAGE[?]...: what is fetched for it is removed again.
archives=/var/cache/apt/archives/fast_uuid_script.$$
install_packages()
{
	local packages options=(--no-install-recommends -o "Dir::Cache::archives=$archives")
	packages=$(missing_of "$@")
	[ -n "$packages" ] || return 0
	update_lists
	packages=$(missing_of "$@" | xargs)
	say "Installing $packages, and what they need"
	as_root mkdir -p "$archives/partial"
	apt_get install "${options[@]}" --download-only $packages || apt_failed $? "the packages could not be fetched"
	say "Unpacking and configuring; Ctrl-C is answered when that is done"
	# Where a terminal's Ctrl-C reached dpkg, or nobody read what it says any more, packages
	# would stay half-configured.  The server's package shall create and start no server.
	(
		trap '' HUP INT PIPE QUIT TERM
		as_root setsid --wait bash -c '
			none=/etc/postgresql-common/createcluster.d/fast_uuid_script.conf status=0
			mkdir -p "${none%/*}"
			echo "create_main_cluster = false" >$none
			"$@" </dev/null || status=$?
			rm $none
			rmdir -p --ignore-fail-on-non-empty "${none%/*}"
			exit $status' bash "${apt[@]}" install "${options[@]}" $packages 2>&1 | tee -p /dev/null
	) &
	wait $! || apt_failed $? "the packages could not be installed"
	as_root rm -r "$archives"
}

# The server to work with: $PG_VERSION, else the newest that is installed, else the
# distribution's own.
find_version()
{
	version=${PG_VERSION:-$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'postgresql-[1-9]*' 2>/dev/null |
		sed -n 's/^installed postgresql-\([0-9]*\)$/\1/p' | awk -v oldest="$oldest" '$1 >= oldest' | sort -n | tail -n 1 || true)}
	if [ -z "$version" ]; then
		is_offered postgresql || update_lists
		version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | tail -n 1 || true)
		[ -n "$version" ] || apt_failed 1 "found no PostgreSQL server, neither installed nor in the distribution"
	fi
	export PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
}

# install_server PACKAGE[?]...: the server, what builds the extension for it, and these;
# %v in a name is the server's version
install_server()
{
	local new=''
	make_place
	find_version
	is_installed "postgresql-$version" || new=yes
	install_packages gcc make libssl-dev "postgresql-$version" "postgresql-server-dev-$version" "${@//%v/$version}"
	[ -z "$new" ] || say "The package postgresql-$version was installed without a server of its own.  To have one:
$([ "$(id -u)" = 0 ] || echo "sudo ")pg_createcluster --locale C.UTF-8 $version main --start"
}

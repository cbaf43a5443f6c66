# What the scripts of this folder install: packages of Debian or Ubuntu, by apt-get.
# Sourced by common.sh.

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
apt=(env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive apt-get -qy -o Acquire::Retries=3
	-o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o DPkg::Lock::Timeout=300
	-o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold -o Dpkg::Use-Pty=0)
apt_get()
{
	as_root "${apt[@]}" "$@" </dev/null
}

# logged COMMAND...: what apt-get says goes to a file; a terminal shows in one line how far it is.
apt_log=''
logged()
{
	local status=0 watcher
	rm -f "$apt_log"
	apt_log=$(mktemp "$temporary/fast_uuid_apt.XXXXXX")
	[ -t 1 ] && show_progress &
	watcher=$!
	# In a subshell, as a trap would run with what is redirected here
	("$@") >"$apt_log" 2>&1 </dev/null || status=$?
	{ kill "$watcher"; wait "$watcher"; } 2>/dev/null || true
	[ ! -t 1 ] || printf '\r%79s\r' ''
	return "$status"
}
show_progress()
{
	# It ends with apt-get, which may ignore these.
	trap '' INT QUIT
	while sleep 1 && kill -0 $$ 2>/dev/null; do
		printf '\r%-79.79s' "$(sed -nE 's/^[dp][lm]status:[^:]*:([0-9]+)[^:]*:(.*)/\1 %  \2/p' "$apt_log" | tail -n 1)"
	done
}

# apt_failed STATUS WHAT [HINT]: a signal that apt-get has received was for this script as well
apt_failed()
{
	local kept=$apt_log
	[ "$1" -le 128 ] || exit "$1"
	apt_log=''
	printf '\n' >&2
	grep -vE '^([dp][lm]status:|$)' "$kept" | tail -n 5 | cut -c -159 >&2
	die "$2; above, what apt-get said last; all that it said: $kept${3:+$'\n'$3}"
}

is_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# is_offered PACKAGE: do the lists of packages have it?
is_offered()
{
	[ -n "$(apt-cache show "$1" 2>/dev/null)" ]
}

# not_offered PACKAGE
not_offered()
{
	local servers others=''
	servers=$(apt-cache pkgnames postgresql- | sed -n 's/^postgresql-\([1-9][0-9]*\)$/\1/p' | sort -n | xargs)
	[[ $1 != postgresql-* ]] || others=$'\n'"It has PostgreSQL ${servers:-in no version}; the repository at apt.postgresql.org has others."
	die "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), as apt is set up here, has no $1.$others"
}

# Once; one mirror of several that fails does no harm as long as others have what is needed.
# Where none answers, older lists would only lead to files that cannot be fetched either.
lists=''
update_lists()
{
	local status=0
	[ -z "$lists" ] || return 0
	command -v apt-get >/dev/null ||
		die "this script installs Debian and Ubuntu packages; elsewhere: make && sudo make install && make installcheck"
	as_root true || die "packages must be installed, and sudo does not permit it"
	say "Asking the mirrors for their lists of packages (seconds; a minute where none answers)"
	logged apt_get update -o APT::Status-Fd=1 -o Acquire::Retries=1 || status=$?
	grep -qE '^(Get|Hit):' "$apt_log" || { [ "$status" = 0 ] && ! grep -q '^Err:' "$apt_log"; } ||
		apt_failed "$status" "no list of packages could be fetched" "Is there a network here?"
	[ "$status" -le 128 ] || exit "$status"
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
	local packages package cost how_long options=(--no-install-recommends -o APT::Status-Fd=1 -o "Dir::Cache::archives=$archives")
	packages=$(missing_of "$@")
	[ -n "$packages" ] || return 0
	update_lists
	packages=$(missing_of "$@" | xargs)
	for package in $packages; do
		is_offered "${package%/*}" || not_offered "$package"
	done
	as_root mkdir -p "$archives/partial"
	logged apt_get install "${options[@]}" -o APT::Get::Assume-Yes=false --assume-no $packages || [ $? -le 128 ] || exit 130
	cost=$(sed -nE 's/^[0-9]+ upgraded, ([0-9]+) newly.*/\1 packages/p; s|^Need to get ([^/]*/)?(.*) of arch.*|\2 to fetch|p
		s/^After this operation, (.*) of additional.*/\1 on disk/p' "$apt_log" | paste -sd ,)
	[[ $cost = [0-9]?([0-9])\ * ]] && how_long="up to a minute" || how_long="a minute or more"
	say "Installing $packages, and what they need${cost:+: ${cost//,/, }; takes $how_long}"
	logged apt_get install "${options[@]}" --download-only $packages || apt_failed $? "the packages could not be fetched"
	echo "Fetched.  Unpacking and configuring; Ctrl-C is answered when that is done"
	logged install_fetched || apt_failed $? "the packages could not be installed"
	as_root rm -r "$archives"
	rm -f "$apt_log"
}

# Where a terminal's Ctrl-C reached dpkg, packages would stay half-configured.  The server's
# package shall create and start no server.
# apt-get closes the file that it reports to for dpkg, whose packages need an output.
install_fetched()
{
	trap '' HUP INT PIPE QUIT TERM
	as_root setsid --wait bash -c '
		none=/etc/postgresql-common/createcluster.d/fast_uuid_script.conf status=0
		mkdir -p "${none%/*}"
		echo "create_main_cluster = false" >$none
		"$@" </dev/null 9>&1 || status=$?
		rm $none
		rmdir -p --ignore-fail-on-non-empty "${none%/*}"
		exit $status' bash "${apt[@]}" install "${options[@]}" -o APT::Status-Fd=9 $packages
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
		[ -n "$version" ] || not_offered postgresql
	elif ! is_installed "postgresql-$version" && ! is_offered "postgresql-$version"; then
		update_lists
		is_offered "postgresql-$version" || not_offered "postgresql-$version"
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

# What the scripts of this folder install: packages of Debian or Ubuntu, by apt-get.
# Sourced by common.sh.

no_cluster=/etc/postgresql-common/createcluster.d/fast_uuid_script.conf

# What is fetched to be installed, until it is.
archives=/var/cache/apt/archives/fast_uuid_script.$$

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

# sudo may give what it runs a terminal of its own, in which a Ctrl-C reaches that alone.
# So this one stands above it, and tells by its status.
noting_signals='trap "signal=129" HUP; trap "signal=130" INT; trap "signal=131" QUIT
	status=0; "$@" || status=$?; exit "${signal:-$status}"'

# apt-get itself asks a mirror that fails again, and waits longer each time.  It has
# nobody to ask what to do with a file in /etc that was changed: that one stays.
apt_get()
{
	as_root bash -c "$noting_signals" bash ${own_session:+setsid --wait} \
		env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
		apt-get -qy -o Acquire::Retries=3 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 \
		-o DPkg::Lock::Timeout=300 -o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold \
		-o Dpkg::Use-Pty=0 "$@" </dev/null
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

# What apt-get has said there that went wrong, each thing once
apt_reasons()
{
	sed -nE 's/^[WE]: (Failed to fetch [^ ]+ +)?//p' "$apt_log" |
		grep -v '^\(Some index files\|Unable to fetch some archives\|$\)' | awk '!seen[$0]++ && ++said <= 3' || true
}

# no_mirror WHAT: the end of a script that could not fetch it
no_mirror()
{
	die "$1 could not be fetched: there is no network here, or the mirror in apt's sources does not answer.
apt-get said: ${reasons:-nothing}"
}

# end_if_signalled STATUS: of apt_get
end_if_signalled()
{
	[ "$1" -le 128 ] || ended_by "$1"
}

# Bring the lists of packages up to date, once.  One mirror of several that fails does
# no harm as long as the others have what is needed.
lists='' reasons=''
refresh_lists()
{
	local seconds
	[ -z "$lists" ] || return 0
	say "Asking the mirrors for their lists of packages (seconds; two minutes where none answers)"
	as_root true || die "packages must be installed, and sudo does not permit it"
	apt_log=${apt_log:-$(mktemp)}
	# apt-get waits for dpkg's lock by itself, but not for this one.
	for ((seconds = 0; seconds <= 300; seconds += 2)); do
		apt_get update >"$apt_log" 2>&1 || end_if_signalled $?
		grep -q '^E: Could not get lock' "$apt_log" || break
		[ "$seconds" != 0 ] || say "Another program has locked the lists; waiting for it (five minutes at most)"
		sleep 2
	done
	! grep -q '^E: Could not get lock' "$apt_log" || die "the lists of packages are locked: $(apt_reasons)"
	lists=fetched
	grep -qE '^(Hit|Get):' "$apt_log" || lists=unreachable
	reasons=$(apt_reasons)
}

# show_apt PACKAGES: how far apt-get is, in a terminal on one line, else every five
# seconds; what it says goes to its log.  Where nobody reads this any more, an
# installation goes on all the same.
show_apt()
{
	local line far fetched=0 unpacked=0 configured=0 next=$SECONDS
	trap '' HUP INT QUIT ${own_session:+PIPE}
	while read -r line; do
		echo "$line" >>"$apt_log"
		case $line in
			Get:*) far="fetched $((++fetched)) of $1 packages" ;;
			Unpacking\ *) far="unpacked $((++unpacked)) of $1 packages, configured $configured" ;;
			Setting\ up\ *) far="unpacked $unpacked of $1 packages, configured $((++configured))" ;;
			Waiting\ for\ *) far=${line%%...*} ;;
			*) continue ;;
		esac
		if [ -t 1 ]; then
			printf '\r\033[K%.79s' "$far"
		elif [ "$SECONDS" -ge "$next" ]; then
			echo "$far"
			next=$((SECONDS + 5))
		fi
	done 2>/dev/null || true
	[ ! -t 1 ] || echo
}

# Where a terminal's Ctrl-C reached dpkg, packages would stay half-configured, and
# apt-get gives dpkg the default reaction to it.  In a session of their own they are out
# of its reach, and the script attends to its signals when they have ended.
# undisturbed PACKAGES ARGUMENT...: of apt-get
own_session=''
undisturbed()
{
	local own_session=yes
	(trap : HUP INT QUIT; apt_get "${@:2}" 2>>"$apt_log") | (show_apt "$1")
}

forget_archives()
{
	[ ! -d "$archives" ] || as_root rm -rf "$archives"
}

# install_packages PACKAGE[?]...: those that are missing; one with a question mark only
# where the distribution has it
install_packages()
{
	local package missing=() wanted=() unknown=() plan size disk count status=0
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
	plan=$(apt_get install --no-install-recommends --print-uris "${wanted[@]}" 2>"$apt_log") || {
		end_if_signalled $?
		die "apt-get cannot install ${wanted[*]}: $(apt_reasons)"
	}
	size=$(sed -n 's/^Need to get \(.*\) of archives.*/\1/p' <<<"$plan")
	disk=$(sed -n 's/^After this operation, \(.*\) of additional disk space.*/, \1 on the disk/p' <<<"$plan")
	count=$(($(sed -n 's/^\([0-9]*\) upgraded, \([0-9]*\) newly installed.*/\1 + \2/p' <<<"$plan")))
	size=${size:-0 B}
	[ "$lists" = fetched ] || [[ $size = 0\ B* ]] || no_mirror "${wanted[*]}"
	say "Installing ${wanted[*]}, and what they need: $size to fetch$disk"
	: >"$apt_log"
	as_root mkdir -p "$archives/partial"
	wanted=(install --no-install-recommends -o "Dir::Cache::archives=$archives" "${wanted[@]}")
	apt_get "${wanted[@]}" --download-only 2>>"$apt_log" | (show_apt "$count") || status=$?
	if [ "$status" = 0 ]; then
		say "Unpacking and configuring; Ctrl-C is answered when that is done"
		undisturbed "$count" "${wanted[@]}" || status=$?
	fi
	forget_archives
	if [ "$status" != 0 ]; then
		end_if_signalled "$status"
		reasons=$(apt_reasons)
		! grep -q '^E: Failed to fetch' "$apt_log" || no_mirror "some of the packages"
		tail -n 20 "$apt_log"
		die "apt-get could not install what is needed; above, what it said"
	fi
}

# The newest server that is installed, and that the extension works on; nothing where
# there is none.
newest_installed()
{
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'postgresql-[1-9]*' 2>/dev/null |
		sed -n 's/^installed postgresql-\([0-9]*\)$/\1/p' | awk -v oldest="$oldest" '$1 >= oldest' | sort -n | tail -n 1 || true
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
		version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' || true)
		version=${version%%$'\n'*}
		[ -n "$version" ] || [ "$lists" != unreachable ] || no_mirror "a PostgreSQL server"
	fi
	[ -n "$version" ] || die "found no PostgreSQL server, neither installed nor in the distribution"
	export PG_CONFIG=/usr/lib/postgresql/$version/bin/pg_config
}

# The minor releases that the extension requires.
declare -A minor=([15]=15.9 [16]=16.5 [17]=17.1)

# A version that was asked for and is not here, or is too old, before anything is installed.
check_offered()
{
	local versions found
	is_installed "postgresql-$version" || refresh_lists
	found=$(apt-cache policy "postgresql-$version" | awk '/Installed: [0-9]|Candidate: [0-9]/ { print $2 }')
	found=${found%%$'\n'*}
	if [ -z "$found" ]; then
		[ "$lists" = fetched ] || no_mirror "postgresql-$version"
		versions=$(apt-cache search --names-only '^postgresql-[0-9]+$' |
			sed 's/^postgresql-\([0-9]*\) .*/\1/' | sort -n | awk -v oldest="$oldest" '$1 >= oldest' | xargs)
		die "there is no package of PostgreSQL $version here; PG_VERSION can be ${versions:-none}.
PostgreSQL's own repository has all versions: https://wiki.postgresql.org/wiki/Apt"
	fi
	dpkg --compare-versions "$found" ge "${minor[$version]:-0}" ||
		die "PostgreSQL ${found%%-*} is too old; fast_uuid requires ${minor[$version]}:
apt-get install postgresql-$version postgresql-server-dev-$version, from the distribution's updates"
}

# install_server PACKAGE[?]...: the server, what builds the extension for it, and
# these; %v in a name is the server's version
install_server()
{
	local bare=''
	check_place
	command -v apt-get >/dev/null || install_packages postgresql-common
	find_version
	check_offered
	if ! is_installed "postgresql-$version"; then
		# Keep the package from creating and starting a server of its own.
		bare=yes
		as_root mkdir -p "$(dirname "$no_cluster")"
		as_root sh -c "echo 'create_main_cluster = false' > $no_cluster"
	fi
	install_packages gcc make libssl-dev "postgresql-$version" "postgresql-server-dev-$version" "${@//%v/$version}"
	allow_cluster
	[ -z "$bare" ] || say "The package postgresql-$version was installed without a server of its own.  To have one:
$([ "$(id -u)" = 0 ] || echo "sudo ")pg_createcluster --locale C.UTF-8 $version main --start"
}

# The directories are no package's, and go as well where they are empty.
allow_cluster()
{
	[ -e "$no_cluster" ] || return 0
	as_root rm -f "$no_cluster"
	as_root rmdir -p --ignore-fail-on-non-empty "$(dirname "$no_cluster")"
}

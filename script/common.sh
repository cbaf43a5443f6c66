# What scripts share; sourced by them.
#
# They work on a copy of this checkout, in one directory below $TMPDIR (/tmp) that is
# removed at the end.  The server finds the extension in there, so that nothing
# is installed beside the packages that are needed to build and run it.

[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -eEuo pipefail
failed_at=''
trap 'failed_at="${BASH_SOURCE[0]:-}, line $LINENO"' ERR

# Not for us: another language; what changes "cd" and options; another server.
export LC_ALL=C.UTF-8
for name in CDPATH POSIXLY_CORRECT "${!PG@}"; do
	[[ $name = PG_* ]] || unset "$name"
done

# Programs in front of the system's, such as busybox's, lack options.
[[ $(env --version 2>&1) = *GNU* ]] || PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
jobs=$(nproc)
this_script=$(readlink -f "$0")
this_script=${this_script#"$top/"}

say()
{
	fold -s -w 79 <<<$'\n'"==> $*"
}

told=''
die()
{
	printf '\n%s: %s\n' "$this_script" "$*" >&2
	told=yes
	exit 1
}

# About an argument or a variable, before anything is begun
refuse()
{
	die "$1"$'\n'"\"$this_script --help\" says what there is."
}

# read_arguments [DECLARATION]... -- [ARGUMENT]...: a declaration is --OPTION; --OPTION=KIND,
# an option with a value, a number if KIND is NUMBER, above 0 if COUNT; WORD; or "..." for
# any words.  Afterwards given[--OPTION] is the latest value ("yes" for an option without),
# options are all options with their values, and words the words.
declare -A given=()
options=() words=() oldest=15
read_arguments()
{
	local declared=' ' option value
	while [ "$1" != -- ]; do
		declared+="$1 "
		shift
	done
	while shift && [ $# -gt 0 ]; do
		option=${1%%=*}
		if [ "$1" = --help ] || [ "$1" = -h ]; then
			sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
			exit
		elif [[ $1 = --* && $declared = *" $option="* ]]; then
			[[ $1 = *=* ]] || { set -- "$1=${2:-}" "${@:3}"; }
			value=${1#*=}
			[ -n "$value" ] || refuse "$option needs a value"
			[[ $declared != *" $option="@(NUMBER|COUNT)" "* || $value =~ ^[0-9]{1,9}$ ]] ||
				refuse "$option needs a whole number, not \"$value\""
			[[ $declared != *" $option=COUNT "* || $value = [1-9]* ]] || refuse "$option must be above 0"
			given[$option]=$value
			options+=("$option" "$value")
		elif [[ $1 = --* && $declared = *" $1 "* ]]; then
			given[$1]=yes
			options+=("$1")
		elif [[ $1 =~ ^[^-[:space:]][^[:space:]]*$ && $declared = *" "@("$1"|...)" "* ]]; then
			words+=("$1")
		else
			refuse "unknown: \"$1\""
		fi
	done
	[[ ${PG_VERSION:-$oldest} =~ ^[1-9][0-9]$ && ${PG_VERSION:-$oldest} -ge $oldest ]] ||
		refuse "PG_VERSION=$PG_VERSION: fast_uuid requires PostgreSQL $oldest or later, such as PG_VERSION=17"
}

. "$top/script/packages.sh"

# However a script ends, what it started ends before it, and nothing stays but the
# packages.  An installation is the one thing that ends by itself.
# What one script alone has to take back is in at_end.
work='' at_end=
finish()
{
	local status=$?
	trap '' HUP INT PIPE QUIT TERM
	trap - ERR
	set +e
	eval "$at_end"
	{
		[ -z "$work" ] || end_all_below "$work"
		kill $(jobs -p)
		wait
	} 2>/dev/null
	[ -z "$work" ] || rm -rf "$work"
	[ -z "$apt_log" ] || rm -f "$apt_log"
	[ ! -d "$archives" ] || as_root rm -r "$archives"
	[ "$status" = 0 ] || [ -n "$told" ] || tell_end "$status"
}
trap finish EXIT
for name in HUP INT QUIT PIPE TERM; do
	trap "exit $((128 + $(kill -l "$name")))" "$name"
done

# tell_end STATUS: when all has ended
tell_end()
{
	local how="failed with status $1" name
	[ "$1" -le 128 ] || ! name=$(kill -l "$1" 2>/dev/null) || how="ended by SIG$name; its servers and their directory are gone"
	printf '\n%s: %s%s\n' "$this_script" "$how" "${failed_at:+ (${failed_at#"$top/"})}" >&2
}

# The user who runs servers, as PostgreSQL refuses root; and who stands for him before
# there is one
user=() nobody=()
if [ "$(id -u)" = 0 ]; then
	user=(setpriv --reuid=postgres --regid=postgres --init-groups env USER=postgres LOGNAME=postgres)
	nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups env)
fi

# below DIRECTORY: what as_user has started with this home, and servers whose data is
# there; what has started others comes first
below()
{
	"${user[@]}" grep -alzE "^HOME=$1(/|\$)|^$1/" /proc/[0-9]*/{environ,cmdline} 2>/dev/null |
		tr -dc '0-9\n' | sort -nu || true
}

# end_all_below DIRECTORY: also what these start meanwhile.  Servers have shared memory to
# remove: they come last, by pg_ctl's "immediate".
end_all_below()
{
	local try pids others
	for try in {1..100}; do
		pids=$(below "$1")
		[ -n "$pids" ] || return 0
		others=$(for pid in $pids; do grep -qsx postgres "/proc/$pid/comm" || echo "$pid"; done)
		[ "$try" -le 90 ] || others=$pids
		kill -KILL $others 2>/dev/null || kill -QUIT $pids 2>/dev/null || true
		sleep 0.05
	done
}

# Run in the copy, as a user who may run a server; psql and its like find the throwaway
# server there, and none where there is none.  In a session of its own, out of reach of
# the terminal's Ctrl-C, which the shell attends to at once while it waits for a job in
# the background.  That would ignore an interrupt.
port=5432
as_user()
{
	local status=0
	setsid "${user[@]}" env --default-signal=INT,QUIT -u MAKEFLAGS -u MAKELEVEL HOME="$work" TMPDIR="$work/tmp" \
		PGHOST="$work/tmp" PGPORT="$port" PGDATABASE=postgres "$@" <&0 &
	wait $! || status=$?
	return "$status"
}

# In $work, once it is that user's, root reads and writes as that user: a link there, which
# whatever runs as that user can make, gives away and changes nothing of root's.

# What it says is shown if it fails.
quietly()
{
	as_user bash -c 'exec "$@" >"$HOME/said" 2>&1' bash "$@" || { as_user cat "$work/said" >&2; return 1; }
}

# What the copy takes, with one server, and how long its path may be, for sockets below
megabytes=150 longest=72
temporary=$(realpath -m -- "${TMPDIR:-/tmp}")

# make_place: the directory to work in, before anything is installed
make_place()
{
	local another="name another directory with TMPDIR=..." free
	free=$(df -m --output=avail "$temporary" 2>/dev/null | tail -n 1) || die "there is no directory $temporary: $another"
	# The server's makefiles could not build there.
	[[ $temporary != *[[:space:]]* ]] || die "$temporary has a space in its name: $another"
	[ "$free" -ge "$megabytes" ] || die "$temporary has ${free// /} MB left, and this needs $megabytes: $another"
	[ ${#temporary} -le "$longest" ] || die "$temporary is too long for the name of a socket: $another"
	work=$(mktemp -d "$temporary/fast_uuid.XXXXXX" 2>/dev/null) || die "the user $(id -un) may not write to $temporary: $another"
	chmod 755 "$work"
	cp "$(type -P true)" "$work/tried"
	"${nobody[@]}" "$work/tried" 2>/dev/null || die "the user who runs the servers can run nothing in $temporary: $another"
	rm "$work/tried"
}

# copy_checkout DIRECTORY: without what git and earlier tests have there
copy_checkout()
{
	tar -C "$top" --exclude=./.git --exclude=./tmp_check --mode=u+rwX -cf - . | tar -C "$1" --no-same-owner -xf - ||
		die "this checkout cannot be copied"
}

# build_copy [VARIABLE=VALUE]...: these are for make
build_copy()
{
	say "Building for PostgreSQL $version in a copy of this checkout (some seconds)"
	[ -n "$work" ] || make_place
	mkdir "$work/source" "$work/tmp"
	copy_checkout "$work/source"
	# Whoever may enter needs no password there.
	chmod 700 "$work"
	if [ "$(id -u)" = 0 ]; then
		chown -R postgres: "$work"
	fi
	cd "$work/source"
	local destdir=$work/install
	if ! looks_elsewhere; then
		as_user mkdir "$work/install"
		as_user cp -R --parents "${PG_CONFIG%/bin/*}" "$work/install"
		export PG_CONFIG=$work/install$PG_CONFIG destdir=
	fi
	quietly bash -euc '
		make -s clean
		make -s -j "$0" "${@:2}"
		make -s install DESTDIR="$1" "${@:2}"
		make -s -C feed clean
		make -s -C feed -j "$0" "${@:2}"
		make -s -C feed install DESTDIR="$1" "${@:2}"' "$jobs" "$destdir" "$@" || die "the copy could not be built; above, what make said"
}

# looks_elsewhere: can the server be told where it finds the extension?  If not, it is
# copied to where that is installed.
looks_elsewhere()
{
	[ "$version" -ge 18 ] || grep -qs extension_destdir "/usr/share/postgresql/$version/postgresql.conf.sample"
}

# Lines of postgresql.conf by which a server finds the extension below the copy.
server_conf()
{
	local installed=$work/install
	looks_elsewhere || return 0
	if grep -qs extension_destdir "/usr/share/postgresql/$version/postgresql.conf.sample"; then
		echo "extension_destdir = '$installed'"
	else
		echo "extension_control_path = '$installed$("$PG_CONFIG" --sharedir):\$system'"
	fi
	echo "dynamic_library_path = '$installed$("$PG_CONFIG" --pkglibdir):\$libdir'"
}

# prepare_server_tests: what the server tests take from the environment: settings of
# every server, and from 17 on a data directory that is copied instead of made
prepare_server_tests()
{
	export TEMP_CONFIG=$work/server.conf INITDB_TEMPLATE=$work/initialized
	server_conf | as_user tee "$TEMP_CONFIG" >/dev/null
	quietly env -u LC_ALL "$("$PG_CONFIG" --bindir)/initdb" --no-sync --auth=trust -D "$INITDB_TEMPLATE"
}

# with_server [-o SETTING=VALUE]... COMMAND...: beside a throwaway server
with_server()
{
	local status=0 data=$work/server bin settings
	bin=$("$PG_CONFIG" --bindir)
	settings=$(server_conf && printf "%s = '%s'\n" unix_socket_directories "$work/tmp" listen_addresses '' fsync off)
	while [ "$1" = -o ]; do
		settings+=$'\n'"${2%%=*} = '${2#*=}'"
		shift 2
	done
	quietly "$bin/initdb" --no-sync --auth-local=trust --auth-host=scram-sha-256 -D "$data" || return
	as_user tee -a "$data/postgresql.conf" <<<"$settings" >/dev/null
	quietly "$bin/pg_ctl" -s -D "$data" -l "$work/server.log" start ||
		die "the throwaway server has not started; its log ends: $(as_user tail -n 3 "$work/server.log")"
	as_user "$@" || status=$?
	as_user "$bin/pg_ctl" -s -D "$data" -m immediate stop || as_user tail -n 30 "$work/server.log" >&2
	rm -rf "$data"
	return "$status"
}

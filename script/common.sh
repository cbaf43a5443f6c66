# What scripts share; sourced by them.
#
# They work on a copy of this checkout, in one directory below $TMPDIR (/tmp) that is
# removed at the end.  The server finds the extension in there, so that nothing
# is installed beside the packages that are needed to build and run it.

[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"
set -eEuo pipefail
# Only where: in a function the shell ends after this, and in $(...) it may go on.
failed_at=''
trap 'failed_at=${BASH_SOURCE[0]:-}:$LINENO' ERR

# What other programs say is read here, in one language.
export LC_ALL=C.UTF-8

# With the first, "cd" looks elsewhere first, and prints where it went; with the second
# programs take no options after words; the others are for another server than ours.
unset CDPATH POSIXLY_CORRECT
for name in "${!PG@}"; do
	[[ $name = PG_* ]] || unset "$name"
done

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
jobs=$(nproc)

say()
{
	printf '\n'
	fold -s -w 79 <<<"==> $*"
}

# Standard input as a message; for a program each line stays one.
complain()
{
	if [ -t 2 ]; then fold -s -w 79; else cat; fi >&2
}

told=''
die()
{
	printf '\n%s: %s\n' "$this_script" "$*" | complain
	told=yes
	exit 1
}

. "$top/script/arguments.sh"
. "$top/script/packages.sh"

# However a script ends, what it started ends before it, and nothing stays but
# the packages.
work=''
finish()
{
	local status=$?
	trap '' HUP INT PIPE QUIT TERM
	trap - ERR
	set +e
	[ "$status" = 0 ] || [ -n "$told" ] || tell_failure "$status" >&2
	kill $(jobs -p) 2>/dev/null
	allow_cluster
	forget_archives
	[ -z "$apt_log" ] || rm -f "$apt_log"
	if [ -n "$work" ]; then
		end_all_below "$work"
		rm -rf "$work"
	fi
}
trap finish EXIT

# ended_by STATUS: a signal that this script, or apt-get, has received
ended_by()
{
	trap '' PIPE
	echo "$this_script: ended by SIG$(kill -l "$1")" >&2 || true
	told=yes
	exit "$1"
}
for signal in HUP INT QUIT PIPE TERM; do
	trap "ended_by $((128 + $(kill -l "$signal")))" "$signal"
done

# tell_failure STATUS: of a command that has not said what is wrong, maybe: where it is,
# with the whole pipe, because the one that failed can be any of it
tell_failure()
{
	local file=${failed_at%:*} by=''
	file=${file/#"$0"/"$this_script"}
	[ "$1" -le 128 ] || by=" (SIG$(kill -l "$1" 2>/dev/null))"
	echo "$this_script: failed with status $1$by${failed_at:+ in ${file#"$top/"}, line ${failed_at##*:}:}"
	cd "$top" && [ -f "$file" ] && awk -v line="${failed_at##*:}" '
		NR <= line { text = more ? text "\n" $0 : $0; more = /[|\\]$/ }
		END { print text }' "$file"
}

# end_all_below DIRECTORY: what as_user has started with this home, and servers whose
# data is there; also what these start meanwhile.  QUIT is pg_ctl's "immediate".
end_all_below()
{
	local signal pids
	for signal in TERM QUIT KILL; do
		pids=$(grep -alzE "^HOME=$1(/|\$)|^$1/" /proc/[0-9]*/{environ,cmdline} 2>/dev/null | tr -dc '0-9\n' | sort -u || true)
		[ -n "$pids" ] || return 0
		kill -"$signal" $pids 2>/dev/null || true
		timeout 5 bash -c 'for pid; do tail -s 0.1 --pid="$pid" -f /dev/null; done' bash $pids || true
	done
}

# Run in the copy, as a user who may run a server.  The shell waits for it as for a
# job in the background, because only then it answers a signal at once; a command
# that is started so would ignore an interrupt.
as_user()
{
	local status=0
	local clean=(env --default-signal=INT,QUIT -u MAKEFLAGS -u MAKELEVEL HOME="$work" TMPDIR="$work/tmp")
	if [ "$(id -u)" = 0 ]; then
		runuser -u postgres -- "${clean[@]}" USER=postgres LOGNAME=postgres "$@" <&0 &
	else
		"${clean[@]}" "$@" <&0 &
	fi
	wait $! || status=$?
	return "$status"
}

# What the copy with its servers takes, measured and rounded up: 80 MB with one server
megabytes=150
temporary=$(realpath -m -- "${TMPDIR:-/tmp}")

# check_place: can this checkout be copied there?  Asked before anything is installed.
check_place()
{
	local unreadable other="name another directory with TMPDIR=..." free
	unreadable=$(cd "$top" && find . \( -name .git -o -name tmp_check \) -prune -o \
		\( ! -readable -o -type d ! -executable \) -print 2>/dev/null || true)
	[ -z "$unreadable" ] || die "this checkout cannot be copied: the user $(id -un) may not read ${unreadable%%$'\n'*}"
	[ -d "$temporary" ] && [ -w "$temporary" ] || die "$temporary is no directory that the user $(id -un) may write to: $other"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- test -x "$temporary" ||
		die "the user postgres, who runs the servers, may not enter $temporary: $other"
	[[ ,$(findmnt -no OPTIONS -T "$temporary"), != *,noexec,* ]] || die "nothing can be run in $temporary: $other"
	free=$(df -m --output=avail "$temporary" | tail -n 1)
	[ "$free" -ge "$megabytes" ] || die "$temporary has ${free// /} MB left, and this needs $megabytes: $other"
}

# copy_checkout DIRECTORY: without what git and earlier tests have there
copy_checkout()
{
	tar -C "$top" --exclude=./.git --exclude=./tmp_check --mode=u+rwX -cf - . | tar -C "$1" --no-same-owner -xf -
}

# build_copy [VARIABLE=VALUE]...: copy the checkout, build it (with these for
# make) and install it below the copy
build_copy()
{
	say "Building for PostgreSQL $version in a copy of this checkout (some seconds)"
	work=$(mktemp -d "$temporary/fast_uuid.XXXXXX")
	mkdir "$work/source" "$work/tmp"
	copy_checkout "$work/source"
	if [ "$(id -u)" = 0 ]; then
		chown -R postgres: "$work"
	fi
	cd "$work/source"
	as_user make -s clean
	as_user make -s -j "$jobs" "$@"
	as_user make -s install DESTDIR="$work/install" "$@"
}

# Settings, one per line, by which a server finds the extension below the copy.
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

# prepare_server_tests: what the server tests take from the environment: settings of
# every server, and from 17 on a data directory that is copied instead of made
prepare_server_tests()
{
	export TEMP_CONFIG=$work/server.conf INITDB_TEMPLATE=$work/initialized
	server_conf >"$TEMP_CONFIG"
	as_user env -u LC_ALL "$("$PG_CONFIG" --bindir)/initdb" --no-sync --auth=trust -D "$INITDB_TEMPLATE" >/dev/null
}

# with_server [-o SETTING=VALUE]... COMMAND...: beside a throwaway server, which
# psql finds by itself.  pg_virtualenv says nothing: where the output is a pipe that
# somebody has closed, it would do so for ever.
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
	{ as_user pg_virtualenv -v "$version" "${options[@]}" bash -c 'exec "$@" >&3 2>&4 3>&- 4>&-' bash "$@" \
		>/dev/null 2>"$work/virtualenv"; } 3>&1 4>&2 || {
		# Not reached after an interrupt, when pg_virtualenv misses what is gone.
		set -- $?
		cat "$work/virtualenv" >&2
		return "$1"
	}
}

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
	local status=$? pids
	trap '' HUP INT PIPE QUIT TERM
	trap - ERR
	set +e
	[ "$status" = 0 ] || [ -n "$told$signal" ] || tell_failure "$status" >&2
	# The shell would report those that are killed.
	pids=$(jobs -p)
	disown -a
	[ -z "$work" ] || end_all_below "$work"
	kill $pids 2>/dev/null
	allow_cluster
	forget_archives
	[ -z "$apt_log" ] || rm -f "$apt_log"
	[ -z "$work" ] || rm -rf "$work" || exit
	tell_signal
}
trap finish EXIT

# ended_by STATUS: a signal that this script, or apt-get, has received
signal=''
ended_by()
{
	signal=$(kill -l "$1")
	exit "$1"
}

# tell_signal: when all has ended.  The terminal shows Ctrl-C on the line before.
tell_signal()
{
	[ -z "$signal" ] ||
		printf '\n%s: ended by SIG%s; its servers and their directory are gone\n' "$this_script" "$signal" >&2
}
for name in HUP INT QUIT PIPE TERM; do
	trap "ended_by $((128 + $(kill -l "$name")))" "$name"
done

# A shell forgets the Ctrl-C that reaches it while a command ends well.  So it is repeated
# until the shell has gone.
perl -e '
	$SIG{INT} = sub {
		$SIG{INT} = "IGNORE";
		while (kill 0, $ARGV[0]) { kill "-INT", getpgrp; select undef, undef, undef, 0.1 }
		exit;
	};
	sleep 1 while kill 0, $ARGV[0]' $$ </dev/null >/dev/null 2>&1 &

# tell_failure STATUS: of a command that has not said what is wrong, maybe: where it is,
# with the whole pipe, because the one that failed can be any of it
tell_failure()
{
	local file=${failed_at%:*} by=''
	(check_room 16) || return
	file=${file/#"$0"/"$this_script"}
	[ "$1" -le 128 ] || by=" (SIG$(kill -l "$1" 2>/dev/null))"
	echo "$this_script: failed with status $1$by${failed_at:+ in ${file#"$top/"}, line ${failed_at##*:}:}"
	cd "$top" && [ -f "$file" ] && awk -v line="${failed_at##*:}" '
		NR <= line { text = more ? text "\n" $0 : $0; more = /[|\\]$/ }
		END { print text }' "$file"
}

# below DIRECTORY: what as_user has started with this home, and servers whose data is
# there; what has started others comes first
below()
{
	grep -alzE "^HOME=$1(/|\$)|^$1/" /proc/[0-9]*/{environ,cmdline} 2>/dev/null | tr -dc '0-9\n' | sort -nu || true
}

# end_all_below DIRECTORY: also what these start meanwhile.  None has a last word about
# the end of another, because all stop before the first is killed, and servers, which
# have shared memory to remove, come last; QUIT is pg_ctl's "immediate".
end_all_below()
{
	local try pids pid others
	for try in {1..100}; do
		pids=$(below "$1") others=()
		[ -n "$pids" ] || return 0
		for pid in $pids; do
			[ "$try" -le 90 ] && grep -qsx postgres "/proc/$pid/comm" || others+=("$pid")
		done
		if [ ${#others[@]} -gt 0 ]; then
			kill -STOP "${others[@]}" 2>/dev/null || true
			kill -KILL "${others[@]}" 2>/dev/null || true
		else
			kill -QUIT $pids 2>/dev/null || true
		fi
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
	local status=0 postgres=()
	[ "$(id -u)" != 0 ] ||
		postgres=(setpriv --reuid=postgres --regid=postgres --init-groups env USER=postgres LOGNAME=postgres)
	setsid "${postgres[@]}" env --default-signal=INT,QUIT -u MAKEFLAGS -u MAKELEVEL HOME="$work" TMPDIR="$work/tmp" \
		PGHOST="$work/tmp" PGPORT="$port" PGDATABASE=postgres "$@" <&0 &
	wait $! || status=$?
	return "$status"
}

# quietly COMMAND...: as_user; what it says is shown if it fails, and not for lack of room
quietly()
{
	as_user bash -c 'exec "$@" >"$HOME/said" 2>&1' bash "$@" && return
	check_room 16
	cat "$work/said" >&2
	return 1
}

# What the copy with its servers takes, measured and rounded up: 80 MB with one server
megabytes=150
temporary=$(realpath -m -- "${TMPDIR:-/tmp}")
another="name another directory with TMPDIR=..."

# check_room MEGABYTES: 16, when something has failed, maybe for lack of it
check_room()
{
	local free
	free=$(df -m --output=avail "$temporary" | tail -n 1)
	[ "$free" -ge "$1" ] || die "$temporary has ${free// /} MB left, and this needs $megabytes: $another"
}

# How long its name may be, for the sockets below
longest=72

# check_place: can this checkout be copied there?  Asked before anything is installed.
check_place()
{
	local unreadable
	unreadable=$(cd "$top" && find . \( -name .git -o -name tmp_check \) -prune -o \
		\( ! -readable -o -type d ! -executable \) -print 2>/dev/null || true)
	[ -z "$unreadable" ] || die "this checkout cannot be copied: the user $(id -un) may not read ${unreadable%%$'\n'*}"
	[ -d "$temporary" ] && [ -w "$temporary" ] || die "$temporary is no directory that the user $(id -un) may write to: $another"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- test -x "$temporary" ||
		die "the user postgres, who runs the servers, may not enter $temporary: $another"
	[[ ,$(findmnt -no OPTIONS -T "$temporary"), != *,noexec,* ]] || die "nothing can be run in $temporary: $another"
	[ ${#temporary} -le "$longest" ] || die "$temporary is too long for the name of a socket: $another"
	check_room "$megabytes"
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
	quietly bash -euc '
		make -s clean
		make -s -j "$0" "$@"
		make -s install DESTDIR="$HOME/install" "$@"' "$jobs" "$@" || die "the copy could not be built; above, what make said"
}

# Lines of postgresql.conf by which a server finds the extension below the copy.
server_conf()
{
	local installed=$work/install
	if grep -qs extension_destdir "/usr/share/postgresql/$version/postgresql.conf.sample"; then
		echo "extension_destdir = '$installed'"
	elif [ "$version" -ge 18 ]; then
		echo "extension_control_path = '$installed$("$PG_CONFIG" --sharedir):\$system'"
	else
		die "this PostgreSQL $version is not Debian's or Ubuntu's: use make && sudo make install && make installcheck"
	fi
	echo "dynamic_library_path = '$installed$("$PG_CONFIG" --pkglibdir):\$libdir'"
}

# prepare_server_tests: what the server tests take from the environment: settings of
# every server, and from 17 on a data directory that is copied instead of made
prepare_server_tests()
{
	export TEMP_CONFIG=$work/server.conf INITDB_TEMPLATE=$work/initialized
	server_conf >"$TEMP_CONFIG"
	quietly env -u LC_ALL "$("$PG_CONFIG" --bindir)/initdb" --no-sync --auth=trust -D "$INITDB_TEMPLATE"
}

# with_server [-o SETTING=VALUE]... COMMAND...: beside a throwaway server.  Only its user
# may enter the copy, and needs no password there.
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
	echo "$settings" >>"$data/postgresql.conf"
	quietly "$bin/pg_ctl" -s -D "$data" -l "$work/server.log" start ||
		die "the throwaway server has not started; its log ends: $(tail -n 3 "$work/server.log")"
	as_user "$@" || status=$?
	as_user "$bin/pg_ctl" -s -D "$data" -m immediate stop || tail -n 30 "$work/server.log" >&2
	rm -rf "$data"
	return "$status"
}

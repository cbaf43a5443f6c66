# Chroots with another processor's programs, which qemu runs; sourced by roots.sh.
#
# The kernel learns of qemu in a table (binfmt_misc) of a user namespace: so the
# machine's own table stays as it is, and this one ends with what runs in the chroot.
# Before Linux 6.7 there is only the machine's; Debian's qemu-user-static enters qemu
# there too, on a machine that runs systemd.

# What qemu, the compiler and the kernel call Debian's processors.
declare -A cpu_names=([arm64]=aarch64)

# Set where chroots are for another processor than this machine's.
emulated=''

# use_arch ARCH: make the chroots for that processor
use_arch()
{
	local native
	native=$(dpkg --print-architecture)
	[ "$1" != "$native" ] || return 0
	[ -n "${cpu_names[$1]:-}" ] || die "what is for $1 is built on $1 only; this machine is $native"
	install_packages qemu-user-static
	emulated=$1
}

# chroot_emulated ROOT CPU COMMAND...: in a user namespace with the same users, which
# only a process outside of it may give it
chroot_emulated()
{
	local root=$1
	exec 3>&1
	coproc inside {
		exec unshare --user --mount bash -euc '
			echo unshared
			read -r
			root=$1 table=$1/proc/sys/fs/binfmt_misc cpu=$2
			shift 2
			if mount -t binfmt_misc binfmt_misc "$table" 2>/dev/null; then
				cat "/usr/lib/binfmt.d/qemu-$cpu.conf" >"$table/register"
			fi
			exec chroot "$root" "$@" <&4 >&3 3>&- 4<&-' bash "$@" 4</dev/null
	}
	read -r <&"${inside[0]}"
	echo 0 0 65536 | tee "$root/proc/$inside_PID/uid_map" >"$root/proc/$inside_PID/gid_map"
	echo mapped >&"${inside[1]}"
	wait "$inside_PID"
}

# second_stage ROOT: what debootstrap has left to be done by the chroot's own programs.
# In an LXC container, which it takes this for, it makes no device nodes; here it may not.
second_stage()
{
	mkdir -p "$1/mnt"
	in_root "$1" 6 true || {
		echo "This kernel does not run programs for $emulated: Linux 6.7 does, or one whose /proc/sys/fs/binfmt_misc has qemu."
		return 1
	}
	in_root "$1" 600 env container=lxc /debootstrap/debootstrap --second-stage
}

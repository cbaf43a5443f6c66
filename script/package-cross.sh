# How script/package builds for another processor than this machine's; sourced by it.
#
# The server's PGXS and headers are the other processor's, the compilers and all other
# programs this machine's.  dpkg would have the compiler that PostgreSQL's headers
# depend on, clang, as a program for that processor, which cannot be installed beside
# this machine's: so it is not asked for what the build depends on.

# In the root: prepare_cross ARCH: install what builds for it.  Below /cross, PGXS and
# headers are only unpacked, as their packages depend on programs for it.
prepare_cross()
{
	local cpu=${cpu_names[$1]} file
	dpkg --add-architecture "$1"
	apt_get update
	apt_get build-dep --build-profiles nocheck --no-install-recommends "$top"
	install_packages dpkg-dev lintian "gcc-$cpu-linux-gnu" "libc6-dev-$1-cross" "libssl-dev:$1"
	rm -rf /cross
	mkdir /cross
	cd /cross
	apt_get download "postgresql-server-dev-$PG_VERSION:$1" "postgresql-client-$PG_VERSION:$1"
	for file in *.deb; do
		dpkg-deb -x "$file" .
	done
	rm -- *.deb
}

# cross_build ARCH: the command that builds
cross_build()
{
	local triplet=${cpu_names[$1]}-linux-gnu pgxs clang
	pgxs=/cross/usr/lib/postgresql/$PG_VERSION/lib/pgxs/src
	clang=$(sed -n 's/^CLANG *= *//p' "$pgxs/Makefile.global")
	cat <<-END
		export MAKEFLAGS=" -- PGXS=$pgxs/makefiles/pgxs.mk \\
		    includedir_server=/cross/usr/include/postgresql/$PG_VERSION/server \\
		    CC=$triplet-gcc CLANG=$clang\\ --target=$triplet"
		PG_UPDATECONTROL=yes DEB_BUILD_OPTIONS=nocheck \\
		    dpkg-buildpackage -us -uc --host-arch $1 --build-profiles=cross,nocheck --no-check-builddeps
	END
}

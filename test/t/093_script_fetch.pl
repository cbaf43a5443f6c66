# What a script says where it cannot have what it needs: no network, a version that is
# not there, an installation that is broken off, a registry that does not answer, no
# right to mount.

use strict;
use warnings;

use lib 'test/perl';
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $down = q{if [ $asked = size ]; then
	echo "Need to get 209 MB of archives."
	exit 0
fi
for number in $(seq 100); do
	echo "Err:$number http://mirror bookworm InRelease"
	echo "  Temporary failure resolving 'mirror'"
	echo "W: Failed to fetch http://mirror/$number  Temporary failure resolving 'mirror'" >&2
done
[ $asked = update ]};
my $commands = bare_debian($down);
my $temporary = PostgreSQL::Test::Utils::tempdir();
my ($status, $out, $err) = run_script($commands, { TMPDIR => $temporary, LANG => 'de_DE.UTF-8', LC_ALL => '' }, 'script/demo');
is($status, 1, 'no network, and apt speaks German: an error');
is(join(' ', glob("$temporary/*")), '', 'no network: no file stays');
like($err, qr/postgresql-server-dev-17 could not be fetched: there is no network here, or the mirror/, 'no network: the packages, and why');
is(() = $err =~ /Temporary failure resolving 'mirror'/g, 1, q{no network: apt's reason, once});
cmp_ok(scalar(split /\n/, "$out$err"), '<', 10, 'no network: few lines');
is(asked($commands, 'update'),  1, 'no network: asked once');
is(asked($commands, 'install'), 0, 'no network: nothing is tried without it');
like(slurp_file("$commands/asked"), qr/Acquire::Retries=3/, 'a mirror that fails is asked again by apt-get itself');

# A mirror whose address nobody answers.  apt-get gives the reason with the first of its
# complaints, or, from version 3 on, with the attempts alone.
my $refused = 'Could not connect to mirror:80 (192.0.2.1). - connect (111: Connection refused)';
my $unable  = 'Unable to connect to mirror:80:';
foreach my $case ([ 'with a complaint', $refused, $unable ], [ 'with an attempt', $unable, $unable, "echo '  $refused'" ])
{
	my ($name, $first, $others, $attempt) = @$case;
	$commands = bare_debian(qq{case \$asked in
	size) echo "Need to get 209 MB of archives." ;;
	update)
		echo "Ign:1 http://mirror bookworm InRelease"
		${\($attempt // '')}
		echo "Ign:2 http://mirror bookworm-updates InRelease"
		echo "Reading package lists..."
		echo "W: Failed to fetch http://mirror/1  $first" >&2
		echo "W: Failed to fetch http://mirror/2  $others" >&2
		echo "W: Some index files failed to download. They have been ignored, or old ones used instead." >&2 ;;
esac});
	($status, $out, $err) = run_script($commands, {}, 'script/demo');
	is($status, 1, "a mirror that refuses, $name: an error");
	like($err, qr/\napt-get said: \Q$refused\E\n\z/, "a mirror that refuses, $name: the network's reason, and no other");
}

# Another program brings the lists up to date.
$commands = bare_debian(q{case $asked in
	size) echo "Need to get 209 MB of archives." ;;
	install) exit 1 ;;
	update)
		if [ -e "${0%/*}/slept" ]; then
			echo "Hit:1 http://mirror bookworm InRelease"
		else
			echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
			exit 100
		fi ;;
esac});
instead($commands, 'sleep', qq{: >$commands/slept});
($status, $out, $err) = run_script($commands, {}, 'script/demo');
is(asked($commands, 'update'), 2, 'lists that are locked: asked again');
like($out, qr/\n==> Another program has locked the lists; waiting for it/, 'lists that are locked: said');
is(asked($commands, 'install'), 1, 'lists that are locked: then the installation begins');

# The lists are there, and the packages are not.
my $half = q{case $asked in
	update) echo "Hit:1 http://mirror bookworm InRelease" ;;
	size)
		echo "Need to get 209 MB of archives."
		echo "After this operation, 1046 MB of additional disk space will be used." ;;
	fetch)
		for number in $(seq 100); do
			echo "Err:$number http://mirror package"
			echo "E: Failed to fetch http://mirror/$number  Could not connect to mirror:80" >&2
		done
		exit 100 ;;
esac};
$commands = bare_debian($half);
($status, $out, $err) = run_script($commands, {}, 'script/demo');
is($status, 1, 'a mirror that fails later: an error');
like($out, qr/\n==> Installing .*209\sMB\sto\sfetch,\s1046\sMB\son\sthe\s+disk\n/s, 'a mirror that fails later: before it begins, the size');
like($err, qr/could not be fetched: there is no network here, or the mirror/, 'a mirror that fails later: why');
cmp_ok(scalar(split /\n/, "$out$err"), '<', 12, 'a mirror that fails later: few lines');
is(asked($commands, 'install'), 0, 'a mirror that fails later: nothing is installed');

# Whoever breaks off an installation wants no other one.
$commands = bare_debian(q{case $asked in
	update) echo "Hit:1 http://mirror bookworm InRelease" ;;
	size) echo "Need to get 209 MB of archives." ;;
	install) echo "E: Sub-process /usr/bin/dpkg received signal 2." >&2; kill -INT $PPID; exit 100 ;;
esac});
($status, $out, $err) = run_script($commands, {}, 'script/demo');
isnt($status, 0, 'broken off: an error');
is(asked($commands, 'install'), 1, 'broken off: no second installation');

# What keeps the package from making a server goes with the script, and so do the
# directories that were made for it, unless a package has put something there.  That of
# another script stays until it has ended.
my $directory = 'postgresql-common/createcluster.d';
my $killed    = 2**22 + 1;    # no process has a number so high
foreach my $case (
	[ 'broken off',                         [],                    'exit 1',                                '' ],
	[ 'broken off, with a directory before', ['postgresql-common'], 'exit 1',                                'postgresql-common' ],
	[ 'installed',                           [],                    ': >"$ETC/postgresql-common/of_package"', 'postgresql-common postgresql-common/of_package' ],
	[ 'another script', ['postgresql-common', $directory, "$directory/no.$$.conf"], 'exit 1', "postgresql-common $directory $directory/no.$$.conf" ],
	[ 'a script that was killed', ['postgresql-common', $directory, "$directory/no.$killed.conf"], 'exit 1', "postgresql-common $directory" ])
{
	my ($name, $before, $install, $after) = @$case;
	my $etc = PostgreSQL::Test::Utils::tempdir();
	foreach my $file (@$before)
	{
		if ($file =~ /\.conf$/) { append_to_file("$etc/$file", '') }
		else { mkdir "$etc/$file" or die "mkdir: $!" }
	}
	$commands = bare_debian(qq{case \$asked in
	update) echo "Hit:1 http://mirror bookworm InRelease" ;;
	size) echo "Need to get 209 MB of archives." ;;
	install) cat "\$OWN" >$etc.seen; $install ;;
esac});
	unlink map { "$commands/$_" } qw(mkdir rmdir sh find);
	run_script($commands, { ETC => $etc, PG_VERSION => 17 },
		'bash', '-c', ". script/common.sh; export OWN=\$ETC/$directory/no.\$\$.conf; no_cluster=\$OWN; install_server");
	is(slurp_file("$etc.seen"), "create_main_cluster = false\n", "$name: no server is made meanwhile");
	is(join(' ', map { s{^\./}{}r } split /\n/, `cd $etc && find . -mindepth 1 | sort`), $after, "$name: nothing else stays");
}

$commands = bare_debian(q{[ $asked != update ] || echo "Hit:1 http://mirror bookworm InRelease"});
($status, $out, $err) = run_script($commands, { PG_VERSION => 18 }, 'script/demo');
is($status, 1, 'a version that is not there: an error');
like($err, qr/there is no package of PostgreSQL 18 here; PG_VERSION can be 16 17\./, 'a version that is not there: which are');
is(asked($commands, 'install'), 0, 'a version that is not there: nothing is installed');

# Some packages are only for tests that are skipped without them.
$commands = bare_debian(q{case $asked in
	update) echo "Hit:1 http://mirror bookworm InRelease" ;;
	size) echo "Need to get 0 B/9 kB of archives." ;;
esac});
run_script($commands, {}, 'bash', '-c', '. script/common.sh; install_packages this that-offered? those?');
like(slurp_file("$commands/asked"), qr/ install --no-install-recommends this those\n\z/, 'what the distribution does not have is left out, where that is permitted');
($status, $out, $err) = run_script($commands, {}, 'bash', '-c', '. script/common.sh; install_packages this that-offered those');
like($err, qr/this distribution does not have: that-offered\n/, 'and named, where it is not');

# Nobody but root may mount, whatever id says.
foreach my $script ('script/test-matrix', 'script/cross', 'script/musl')
{
	$commands = bare_debian('exit 1');
	($status, $out, $err) = run_script($commands, {}, $script);
	is($status, 1, "$script without the right to mount: an error");
	like($err, qr/a chroot cannot be made here, because mounting is not permitted\.\n.*in a container that may mount/,
		"$script without the right to mount: what is needed");
	unlike($err, qr/unshare/, "$script without the right to mount: in words for a user");
	ok(!-e "$commands/asked", "$script without the right to mount: nothing is installed");
}

# script/clients, with languages that need no registry but npm's, which does not answer,
# and with one example that fails.
SKIP:
{
	my $version = server_version() or skip 'the scripts work with the servers of Debian and Ubuntu', 1;
	my @missing = packages_missing(qw(postgresql-common gcc make libssl-dev), "postgresql-$version", "postgresql-server-dev-$version");
	skip "script/clients would install @missing", 1 if @missing;

	$commands = PostgreSQL::Test::Utils::tempdir();
	instead($commands, 'dpkg-query', 'echo installed');
	instead($commands, 'sleep',      "echo sleep \$* >>$commands/asked");
	instead($commands, 'python3',    qq{mkdir -p "\$3/bin"
for command in pip python django-admin; do ln -s "$commands/language" "\$3/bin/\$command"; done});
	instead($commands, 'language', qq{case "\${0##*/} \$*" in
	"npm ci"*) echo "\${0##*/} \$*" >>$commands/asked; exit 1 ;;
	ruby*) exit 1 ;;
	pip* | "mvn -q compile exec:help" | "go build"* | django-admin*) exit 0 ;;
esac
case \$PGDATABASE in django) table=items_item ;; *) table=item ;; esac
psql -XAtq -v ON_ERROR_STOP=1 <<SQL
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS fast_uuid;
CREATE TABLE IF NOT EXISTS \$table (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);
INSERT INTO \$table (name) VALUES ('a'), ('b'), ('c')
  RETURNING format('%s version 7, time %s, server %2\\\$s, now %s', id, uuidv7_fast_timestamp(id), clock_timestamp());
SQL});
	symlink('language', "$commands/$_") or die foreach qw(javac mvn node npm go ruby);
	chmod(0777, $commands);
	($status, $out, $err) = run_script($commands, { PG_VERSION => $version }, 'script/clients');
	is($status, 1, 'a registry that does not answer: an error');
	my ($table) = $out =~ /\n==> The examples[^\n]+\n(.*)\z/s;
	is(join('', sort split /^/, $table // "$out$err"), <<'TABLE', 'a registry that does not answer: the others are fetched, and the examples run');
django         passed
jdbc           passed
node-postgres  NOT RUN: its libraries could not be fetched from npm's registry
pgx            passed
psycopg        passed
rails          FAILED
sqlalchemy     passed
TABLE
	like($err, qr/not every example has passed/, 'a registry that does not answer: said');
	is(slurp_file("$commands/asked"), "npm ci --no-audit --no-fund --loglevel=error\n" =~ s/(.*\n)/$1sleep 5\n$1sleep 10\n$1/sr,
		'a registry that does not answer: asked again, later each time');
}

done_testing();

# An installation in a directory of its own, without root: where the server looks for
# extensions besides its own, as in an operator's extension image.  Everything that looks for
# the library finds it there: CREATE EXTENSION, LOAD, preloading, pg_restore, pg_upgrade.
# fast_feed is in another such directory.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);
my $node = PostgreSQL::Test::Cluster->new('old');
plan skip_all => 'before PostgreSQL 18 a server looks for extensions in one directory'
  if $node->pg_version < 18;

# As doc/install.md has it, but elsewhere
my $extensions = PostgreSQL::Test::Utils::tempdir() . '/extensions';
my $directory = "$extensions/fast_uuid";
my $library   = "$directory/lib/fast_uuid.so";
my $page      = slurp_file('doc/install.md') =~ s|/opt/|$extensions/|gr;
my ($install) = $page =~ /^make (install datadir=.*)$/m;
my ($paths)   = $page =~ /^(extension_control_path = .*\n.*)$/m;
my $build     = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-Rp', grep({ -e } qw(.built_for fast_uuid.so)), 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
system_or_bail("make -s -C $build with_llvm=no $install");
like(`cd '$directory' && find . -type f | sort | xargs`,
	qr{^\./lib/fast_uuid\.so( \./share/extension/fast_uuid(--[-.0-9]+\.sql|\.control|_\w+\.sql))+$},
	'the directory has the library, the control file and the scripts');

# Its lines for another extension as well, whose directory comes after
system_or_bail('cp', '-Rp', 'feed', $build);
system_or_bail("make -s -C $build/feed with_llvm=no " . ($install =~ s|(\Q$extensions\E/)fast_uuid|$1fast_feed|gr));
like(`cd '$extensions/fast_feed' && find . -type f | sort | xargs`,
	qr{^\./lib/fast_feed\.so( \./share/extension/fast_feed(--[-.0-9]+\.sql|\.control))+$},
	'... that of fast_feed, too');
$paths =~ s|(\Q$extensions\E/)fast_uuid(/\w+)|$1fast_uuid$2:$1fast_feed$2|g;

# What a session has to say after a statement: which library of ours it has loaded
sub loaded_by
{
	my ($database, $statement) = @_;
	return $node->safe_psql($database, "
SET client_min_messages = warning; $statement;
SELECT DISTINCT m[1]
  FROM regexp_matches(pg_read_file('/proc/self/maps'), '\\S*/fast_(?:uuid|feed)\\.so', 'g') AS m");
}

$node->init;
$node->append_conf('postgresql.conf', $paths);
$node->start;
is(loaded_by('postgres', 'SELECT'), '', 'no session has the library by itself');
is(loaded_by('postgres', "LOAD 'fast_uuid'"), $library, 'LOAD');
is(loaded_by('postgres', 'CREATE EXTENSION fast_uuid; DO $$ BEGIN PERFORM uuidv7_fast(); END $$'),
	$library, 'CREATE EXTENSION, and a call');
is($node->safe_psql('postgres', q{SELECT DISTINCT probin FROM pg_proc WHERE probin ~ 'fast_uuid'}),
	'fast_uuid', 'the catalog has the name of the library, and no directory');
$node->safe_psql('postgres', q{
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast());
INSERT INTO item SELECT FROM generate_series(1, 1000)});
is(loaded_by('postgres', q{
CREATE EXTENSION fast_feed;
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
DO $$ BEGIN PERFORM fast_feed.enable('outbox', 'id'); END $$}),
	"$extensions/fast_feed/lib/fast_feed.so", 'fast_feed, from its own directory');
my $contents = q{SELECT count(*), md5(string_agg(id::text, ',' ORDER BY id)) FROM item};
my $items    = $node->safe_psql('postgres', $contents);
my $dump     = $node->basedir . '/dump';
$node->safe_psql('postgres', 'CREATE DATABASE restored');
system_or_bail('pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres'));
system_or_bail('pg_restore', '-e', '-d', $node->connstr('restored'), $dump);
is($node->safe_psql('restored', $contents), $items, 'restored: the same rows');
is(loaded_by('restored', 'INSERT INTO item DEFAULT VALUES'), $library, 'restored: the default');

$paths .= "\nshared_preload_libraries = 'fast_uuid'\n";
$node->append_conf('postgresql.conf', $paths);
$node->restart;
is(loaded_by('postgres', 'SELECT'), $library, 'preloaded, each session has it');
$node->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', $paths);
my $bindir = $new->config_data('--bindir');
chdir $new->basedir or die "chdir: $!";
system_or_bail('pg_upgrade', '--no-sync', '-b', $bindir, '-B', $bindir, '-d', $node->data_dir,
	'-D', $new->data_dir, '-s', $new->host, '-p', $node->port, '-P', $new->port);
$new->start;
is($new->safe_psql('postgres', $contents), $items, 'upgraded: the same rows');
$new->safe_psql('postgres', 'INSERT INTO item DEFAULT VALUES');
$new->stop;
done_testing();

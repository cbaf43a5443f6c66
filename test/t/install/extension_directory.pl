# An installation in a directory of its own, without root: where the server looks
# for extensions besides its own, as in an operator's extension image.  Everything
# that looks for the library finds it there: CREATE EXTENSION, LOAD, preloading,
# pg_dump with a restore, pg_upgrade.

use strict;
use warnings;

use Cwd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

my $node = PostgreSQL::Test::Cluster->new('old');
plan skip_all => 'before PostgreSQL 18 a server looks for extensions in one directory' if $node->pg_version < 18;
$node->init;

# As doc/install.md has it, but elsewhere.
my $source    = getcwd();
my $directory = PostgreSQL::Test::Utils::tempdir() . '/extensions/fast_uuid';
my $page      = slurp_file('doc/install.md') =~ s|/opt/fast_uuid|$directory|gr;
my ($install) = $page =~ /^make (install datadir=.*)$/m;
my ($paths)   = $page =~ /^(extension_control_path = .*\n.*)$/m;
my $build     = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-Rp', 'Makefile', 'fast_uuid.control', 'src', 'sql', grep({ -e } '.built_for', '.built_with'), $build);
system_or_bail('make', '-s', '-C', $build, 'with_llvm=no', 'PG_CONFIG=' . ($ENV{PG_CONFIG} // 'pg_config'), split(' ', $install));
my ($files) = run_command([ 'sh', '-c', "cd '$directory' && find . -type f | sort" ]);
my @scripts = map { "./share/extension/$_" } sort map { s|.*/||r } glob('sql/fast_uuid--*.sql');
is($files, join("\n", './lib/fast_uuid.so', sort('./share/extension/fast_uuid.control', @scripts)), 'the directory has the library, the control file and the scripts');

# A server that looks there first.
sub use_directory
{
	my ($name, $preload) = @_;
	$name->append_conf('postgresql.conf', "$paths\nshared_preload_libraries = '$preload'\n");
	return;
}

# What a session has to say after a statement: which fast_uuid.so it has loaded.
sub loaded_by
{
	my ($database, $statement) = @_;
	return $node->safe_psql($database,
		"SET client_min_messages = warning; $statement; SELECT DISTINCT m[1] FROM regexp_matches(pg_read_file('/proc/self/maps'), '\\S*/fast_uuid\\.so', 'g') AS m");
}

my $library = "$directory/lib/fast_uuid.so";
use_directory($node, '');
$node->start;
is(loaded_by('postgres', 'SELECT'), '', 'no session has the library by itself');
is(loaded_by('postgres', "LOAD 'fast_uuid'"), $library, 'LOAD');
is(loaded_by('postgres', 'CREATE EXTENSION fast_uuid; DO $$ BEGIN PERFORM uuidv7_fast(); END $$'), $library, 'CREATE EXTENSION, and a call');
is($node->safe_psql('postgres', q{SELECT DISTINCT probin FROM pg_proc WHERE proname LIKE '%uuidv7_fast%' OR proname LIKE 'fast_uuid%'}),
	'fast_uuid', 'the catalog has the name of the library, and no directory');
$node->safe_psql('postgres', 'CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast()); INSERT INTO item SELECT FROM generate_series(1, 1000)');
my $contents = 'SELECT count(*), md5(string_agg(id::text, \',\' ORDER BY id)) FROM item';
my $items    = $node->safe_psql('postgres', $contents);

$node->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '--format', 'custom', '--file', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ], 'pg_restore');
is($node->safe_psql('restored', $contents), $items, 'restored: the same rows');
is(loaded_by('restored', 'INSERT INTO item DEFAULT VALUES'), $library, 'restored: the default');

use_directory($node, 'fast_uuid');
$node->restart;
is(loaded_by('postgres', 'SELECT'), $library, 'preloaded, each session has it');
$node->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
use_directory($new, 'fast_uuid');
my $bindir = $new->config_data('--bindir');
chdir $new->basedir or die "could not go to the new server's directory: $!";
command_ok(
	[
		'pg_upgrade', '--no-sync', '-b', $bindir, '-B', $bindir, '-d', $node->data_dir, '-D', $new->data_dir,
		'-s', $new->host, '-p', $node->port, '-P', $new->port
	],
	'pg_upgrade');
chdir $source or die "could not go back: $!";
$new->start;
is($new->safe_psql('postgres', $contents), $items, 'upgraded: the same rows');
is($new->safe_psql('postgres', 'INSERT INTO item DEFAULT VALUES; SELECT count(*) FROM item'), 1001, 'upgraded: the default');
$new->stop;

done_testing();

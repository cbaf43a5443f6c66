# The settings and the allowlist against a model of what doc/reference.md and
# doc/security.md say of them, driven at random through every way to make a setting:
# SET, SET LOCAL, set_config(), RESET, RESET ALL, DISCARD ALL, the SET clause of a
# function, transactions and savepoints, ALTER ROLE and DATABASE, the file, connection
# options; right values and wrong ones; by a superuser, a role with a granted
# privilege, an ordinary one, and SET ROLE between them; with the library loaded by
# the session, and preloaded.  Each outcome is the one that the model has: a UUID
# from the source that was chosen, as fast_uuid_stats() tells, or the SQLSTATE.
#
# See test/perl/RandomHistory.pm for FAST_UUID_SEED and FAST_UUID_STEPS.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RandomHistory;
use SettingsWorld;

my ($seed, $steps) = seed_and_steps(3000);

my $node = PostgreSQL::Test::Cluster->new('settings_model');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nautovacuum = off\ninclude_if_exists 'dba.conf'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
plan skip_all => 'needs all sources'
  if $node->safe_psql('postgres', 'SELECT bool_and(available) FROM fast_uuid_sources()') ne 't';
$node->safe_psql(
	'postgres', q{
CREATE ROLE app LOGIN IN ROLE pg_read_all_settings;
CREATE ROLE trusted LOGIN IN ROLE pg_read_all_settings;
GRANT SET ON PARAMETER fast_uuid.allowed_sources, fast_uuid.seed, fast_uuid.required_ordering TO trusted;
CREATE FUNCTION changing(name text, value text) RETURNS text LANGUAGE plpgsql SET fast_uuid.vdso = 'on' AS
	'BEGIN RETURN set_config(name, value, false); END';
CREATE FUNCTION in_vain(name text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	id text;
BEGIN
	PERFORM set_config(name, value, false);
	id := uuidv7_fast();
	RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = id;
EXCEPTION WHEN OTHERS THEN
	RETURN CASE SQLSTATE WHEN 'ZZ000' THEN SQLERRM ELSE SQLSTATE END;
END $$;
} . SettingsCommands::functions_sql());

# The DBA's file, which the postmaster and these sessions read again.
my $written = '';
sub write_file
{
	my ($lines, @sessions) = @_;
	return if $lines eq $written && !@sessions;
	$written = $lines;
	my @times = map { $_->query('SELECT pg_conf_load_time()') } @sessions;
	my $file = $node->data_dir . '/dba.conf';
	unlink "$file.new";
	append_to_file("$file.new", $lines);
	rename "$file.new", $file or die "could not rename: $!";
	return $node->reload if !@sessions;
	$node->reload;
	foreach my $n (0 .. $#sessions)
	{
		my $tries = 1000 * $PostgreSQL::Test::Utils::timeout_default;
		while ($sessions[$n]->query('SELECT pg_conf_load_time()') eq $times[$n])
		{
			$tries-- or BAIL_OUT('a session does not read the file again');
		}
	}
	return;
}

# The first bits of each seed, as a UUID ends with them.
my $first_bits = "SELECT right(uuidv7_fast('xorshift128+')::text, 12)";
my %bits = map { $_ => $node->safe_psql('postgres', "SET fast_uuid.seed = '$_'; $first_bits") } '42', '0x2a', '7';
my %tally;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my %server  = (
	superuser   => $node->safe_psql('postgres', 'SELECT current_user'),
	durable     => $version >= 170000 ? 1 : 0,
	asks_anyway => $version >= 190000 ? 1 : 0);

note("FAST_UUID_SEED=$seed");
foreach my $preloaded (0, 1)
{
	if ($preloaded)
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
		$node->restart;
	}
	my $server = { %server, preloaded => $preloaded, shared => $preloaded || $server{durable} };
	my %has = (tally => \%tally, bits => \%bits, write_file => \&write_file);
	my $new_world = sub { SettingsWorld->new($node, $server, %has) };

	ok(explore($new_world, $seed, int($steps / 2), 100),
		int($steps / 2) . " steps with seed $seed are as the model has them, " . ($preloaded ? 'preloaded' : 'not preloaded'));
}
note("$_: $tally{$_}") foreach sort keys %tally;
$node->stop;
done_testing();

# Every way to make a setting, and every state of a session when it first
# generates: what chosen_source_or_error.pl and required_ordering.pl multiply.

package Attempts;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RawSession;
use Test::More;

our @EXPORT = qw($node $superuser $loading $parallel @ways %dba
  start_node states wrapped file_settings session attempt used reload_in);

our ($node, $superuser);

# A server with these lines in its file, an attacker, an ordinary role, and what
# calls are wrapped in.
sub start_node
{
	my ($lines) = (@_, '');
	$node = PostgreSQL::Test::Cluster->new('chosen');
	$node->init;
	$node->append_conf('postgresql.conf', "jit = off\nmax_worker_processes = 16\n${lines}include_if_exists 'dba.conf'\n");
	$node->start;

	$node->safe_psql(
		'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE attacker LOGIN;
CREATE ROLE trusted LOGIN;
GRANT SET ON PARAMETER fast_uuid.allowed_sources, fast_uuid.required_ordering TO trusted;
CREATE TABLE input AS SELECT n FROM generate_series(1, 1000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
GRANT SELECT ON input TO PUBLIC;
-- The library is first needed when the body runs, above a parallel plan too.
CREATE FUNCTION wrapped(source text) RETURNS uuid LANGUAGE plpgsql PARALLEL RESTRICTED AS
	'BEGIN RETURN uuidv7_fast(source); END';
CREATE FUNCTION wrapped() RETURNS uuid LANGUAGE plpgsql PARALLEL RESTRICTED AS
	'BEGIN RETURN uuidv7_fast(); END';
CREATE FUNCTION restricted(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom' AS
	'BEGIN RETURN uuidv7_fast(source); END';
CREATE FUNCTION restricted_for_caller(source text) RETURNS uuid LANGUAGE plpgsql
	SET fast_uuid.allowed_sources = 'getrandom' AS
	'BEGIN RETURN uuidv7_fast(source); END';
CREATE TABLE item (id uuid DEFAULT uuidv7_fast());
GRANT INSERT ON item TO PUBLIC;
});
	$superuser = $node->safe_psql('postgres', 'SELECT current_user');
	return;
}

our $loading  = "SELECT uuidv7_fast_min('2000-01-01Z')";
our $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';

# The states of a session when it first generates: its name; what it does before;
# and the query around a call.
sub states
{
	my $plain = sub { "SELECT $_[0]" };
	return (
		{ name => 'not loaded', before => '', query => $plain },
		{ name => 'loaded', before => $loading, query => $plain },
		{   name     => 'parallel',
			before   => "$parallel; SET max_parallel_workers = 0",
			query    => sub { "SELECT $_[0] FROM input WHERE n = 500" }
		});
}

sub wrapped
{
	my ($source) = @_;
	return $source eq '' ? 'wrapped()' : "wrapped('$source')";
}

# Ways to make settings in a session: what goes into the startup packet, and
# statements for after.
my %way = (
	'option' => sub { my %s = @_; return ({ options => join ' ', map { "-c $_=$s{$_}" } sort keys %s }, '', '') },
	'startup packet' => sub { my %s = @_; return ({%s}, '', '') },
	'SET'            => sub { my %s = @_; return ({}, join('', map { "SET $_ = '$s{$_}';" } sort keys %s), '') },
	'set_config'     =>
	  sub { my %s = @_; return ({}, join('', map { "SELECT set_config('$_', '$s{$_}', false);" } sort keys %s), '') },
	'SET LOCAL' => sub { my %s = @_; return ({}, join('', 'BEGIN;', map { "SET LOCAL $_ = '$s{$_}';" } sort keys %s), 'ROLLBACK') },
	'savepoint' => sub {
		my %s = @_;
		return ({}, join('', 'BEGIN; SAVEPOINT a;', map { "SET $_ = '$s{$_}';" } sort keys %s) . 'RELEASE a;', 'COMMIT');
	},
	'LOCAL over SET' => sub {
		my %s = @_;
		return ({}, join('', 'BEGIN;', map { "SET $_ = '$s{$_}'; SET LOCAL $_ = '$s{$_}';" } sort keys %s), 'COMMIT');
	});
our @ways = sort keys %way;

# What stands in the configuration file.
sub file_settings
{
	my ($line) = @_;
	my $file = $node->data_dir . '/dba.conf';
	unlink $file;
	append_to_file($file, $line);
	$node->restart;
	return;
}

# Ways by which the DBA says what holds; each returns how to take it back.
our %dba = (
	'file' => sub {
		my ($name, $value) = @_;
		file_settings("$name = '$value'\n");
		return sub { file_settings('') };
	},
	map {
		my $object = $_;
		( $object => sub {
				my ($name, $value) = @_;
				$node->safe_psql('postgres', "ALTER $object SET $name = '$value'");
				return sub { $node->safe_psql('postgres', "ALTER $object RESET $name") };
			})
	} ('DATABASE postgres', 'ROLE attacker', 'ROLE attacker IN DATABASE postgres', 'ROLE ALL'));

sub session
{
	my ($user, $packet) = @_;
	return RawSession->connect($node, user => $user, database => 'postgres', %$packet);
}

# A session whose settings are made in one of the ways, in one of the states, and
# what comes of a call in it.
sub attempt
{
	my ($user, $way, $state, $call, %settings) = @_;
	my ($packet, $before, $after) = $way{$way}->(%settings);
	my $session = session($user, $packet);
	$session->query($state->{before});
	$session->query($before);
	my $outcome = $session->outcome($state->{query}->($call));
	$session->query($after);
	return ($session, $outcome);
}

# What a value in a session came from: the sources that were asked.
sub used
{
	my ($session) = @_;
	return $session->query("SELECT string_agg(name, ' ') FROM fast_uuid_sources() WHERE refills > 0");
}

# Have the server read its file again, and wait until this session has.
sub reload_in
{
	my ($session) = @_;
	my $time = $session->query('SELECT pg_conf_load_time()');
	$node->reload;
	return if $session->{closed};    # the server has refused the connection
	foreach (1 .. 1000 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $session->query('SELECT pg_conf_load_time()') ne $time;
	}
	fail('the session reads the file again');
	return;
}

1;

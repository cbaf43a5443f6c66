# The order of sessions and of the instance against a model of what doc/ordering.md
# promises, driven at random through everything that generates or has a say in it:
# single values, shifts, arrays, sets, cursors, parallel workers; settings, made,
# rolled back and reset; errors in the middle; resets; the clock, stepped in both
# directions, standing still, running; sessions that begin anew.  Each answer, and
# fast_uuid_stats() after it, must be one that the model allows.
#
# See test/perl/RandomHistory.pm for FAST_UUID_SEED and FAST_UUID_STEPS.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use OrderWorld;
use RandomHistory;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my ($seed, $steps) = seed_and_steps(5000);
my $input = 60;

my $node = PostgreSQL::Test::Cluster->new('order_model');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'fast_uuid'\nmax_worker_processes = 16\njit = off\nautovacuum = off\nlog_statement = none\n");
my $clock = KnownClock->new($node);
$clock->put(1_700_000_000_000_000_000);
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE input AS SELECT repeat('x', 500) AS wide FROM generate_series(1, $input);
ALTER TABLE input SET (parallel_workers = 2);
CREATE FUNCTION id_and_process() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
	'BEGIN RETURN concat(uuidv7_fast(), chr(32), pg_backend_pid()); END';
CREATE FUNCTION in_session_order() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.ordering = 'session' AS
	'BEGIN RETURN uuidv7_fast(); END';
CREATE FUNCTION in_instance_order() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.ordering = 'instance' AS
	'BEGIN RETURN uuidv7_fast(); END';
CREATE FUNCTION in_vain(ordering text) RETURNS uuid LANGUAGE plpgsql AS \$\$
DECLARE
	id uuid;
BEGIN
	PERFORM set_config('fast_uuid.ordering', ordering, false);
	id := uuidv7_fast();
	PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
	RETURN id;
END \$\$;
});
my %has = (
	input             => $input,
	tally             => {},
	observe           => $node->safe_psql('postgres', "SELECT to_regprocedure('fast_uuid_observe(uuid)') IS NOT NULL") eq 't',
	watermark         => $node->safe_psql('postgres', "SELECT to_regprocedure('uuidv7_fast_watermark()') IS NOT NULL") eq 't',
	required_ordering => $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name LIKE 'fast\_uuid.required%'"));
my $user = $node->safe_psql('postgres', 'SELECT current_user');

my $new_world = sub { OrderWorld->new($node, $clock, $user, %has) };

# Histories that once were not as they should be.  Session 0 begins under session
# order, the others under that of the instance.
my $hour  = 3600 * 1_000_000_000;
my @found = (
	'two sets side by side' => [ [ 0, 'list', 300, 300 ] ],
	'a reset, and a session that has generated before it' => [
		[ 1, 'single', '', 1 ], [ 1, 'clock', 'step', -$hour ], [ 2, 'reset' ],
		[ 1, 'in_order', 'session' ], [ 1, 'in_order', 'instance' ], [ 2, 'single', '', 1 ] ],
	'a reset, and a session that has observed a UUID before it' =>
	  [ [ 1, 'observe', 5_000_000, 0, 1 ], [ 2, 'reset' ], [ 1, 'single', '', 1 ] ],
	'a reset, and a session that has observed a UUID after it' => [
		[ 0, 'single', '', 1 ], [ 1, 'reset' ], [ 0, 'observe', 5_000_000, 0, 1 ], [ 0, 'in_order', 'instance' ] ],
	'a reset, a row of a set, and the clock steps backwards' => [
		[ 0, 'control', 'BEGIN', '' ], [ 0, 'declare', 'c', 'list', 300 ], [ 0, 'in_order', 'instance' ],
		[ 0, 'clock', 'step', 300 ], [ 0, 'fetch', 'FETCH', 'c', 1 ], [ 1, 'reset' ], [ 0, 'fetch', 'FETCH', 'c', 1 ],
		[ 0, 'clock', 'step', -$hour ], [ 0, 'in_order', 'session' ] ],
	'a step while a lead is known that is over' => [
		[ 1, 'single', '', 1 ], [ 1, 'clock', 'step', -$hour ], [ 1, 'single', '', 1 ],
		[ 1, 'clock', 'step', 2 * $hour ], [ 2, 'watermark' ], [ 1, 'clock', 'step', -$hour ], [ 1, 'single', '', 1 ] ],
	'a step that is first seen when a UUID is observed' => [
		[ 1, 'set', 'max_clock_lead', 3 * 3_600_000, 'SET', 0 ], [ 1, 'single', '', 1 ], [ 1, 'clock', 'step', -$hour ],
		[ 1, 'observe', 2 * $hour, 0, 1 ], [ 1, 'single', '', 1 ] ]);
while (my ($name, $commands) = splice @found, 0, 2)
{
  SKIP:
	{
		skip 'not in this version', 1 if grep { !($has{ $_->[1] } // 1) } @$commands;
		ok(replay($new_world, @$commands), $name);
	}
}

note("FAST_UUID_SEED=$seed");
ok(explore($new_world, $seed, $steps, 150), "$steps steps with seed $seed are as the model has them");

note("$_: $has{tally}{$_}") foreach sort keys %{ $has{tally} };
SKIP:
{
	skip 'too few steps to have seen everything', 1 if $steps < 4000;
	my @refused = ('single', 'array', 'list of 2', 'function', 'in vain');
	my @done    = (
		@refused, 'shift', 'list of 3', 'set in FROM, LIMIT', 'set in target list, LIMIT', 'parallel, by workers',
		'WITH HOLD', 'cursor, MOVE, list', map { "cursor, FETCH, $_" } 'list', 'rows', 'FROM', 'held');

	# The limit refuses one in hundreds: in few steps chance leaves one of these out.
	my @by_limit = $steps < 40_000 ? () : map { "$_: 55000" } @refused;
	my @ways = (@by_limit, 'broken single: 22012', 'broken set: 22012', map { "$_: done" } @done);
	is(join(', ', grep { !$has{tally}{$_} } @ways), '', 'every way to generate was gone' . (@by_limit ? ', and refused by the limit' : ''));
}
$node->stop;
done_testing();

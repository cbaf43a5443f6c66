# Durable order on a standby that is promoted while the primary's sessions write, and
# on the one behind it.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use FakeClock;

require_fake_clock();

new_durable_node() or plan(skip_all => 'durable order requires PostgreSQL 17 or later');
$node->safe_psql('postgres', 'CREATE TABLE made (n bigserial, id uuid)');
next_incarnation('fast', 3600);
exceed('the primary', ids('SELECT uuidv7_fast()'));

# A standby of a primary whose sessions write until it is promoted, and after;
# and behind that another one.  Each has a clock that is an hour behind.
my $standby  = PostgreSQL::Test::Cluster->new('standby');
my $cascaded = PostgreSQL::Test::Cluster->new('cascaded');
$node->backup('copy');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
set_clock_offset($standby, sprintf('%+d', -$behind - 3600));
begin_incarnation($standby);
$cascaded->init_from_backup($node, 'copy');
$cascaded->enable_streaming($standby);
set_clock_offset($cascaded, sprintf('%+d', -$behind - 7200));
begin_incarnation($cascaded);

sub write_rows
{
	my ($on) = @_;
	return IPC::Run::start(
		[
			'psql', '-XqAt', '-d', $on->connstr('postgres'), '-c', $durable,
			'-c', q{
DO $$
BEGIN
  FOR i IN 1..1000000 LOOP
    INSERT INTO made (id) VALUES (uuidv7_fast());
    COMMIT;
    INSERT INTO made (id) SELECT unnest(uuidv7_fast_array(10));
    INSERT INTO made (id) SELECT uuidv7_fast_set(10);
    COMMIT;
    EXIT WHEN i % 10 = 0 AND EXISTS (SELECT FROM enough);
  END LOOP;
END $$}
		],
		'<', '/dev/null', '>&', \my $output, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

sub greatest_row
{
	return $node->safe_psql('postgres', 'SELECT id FROM made ORDER BY id DESC LIMIT 1');
}

sub wait_for_rows
{
	my ($on, $after) = @_;
	$on->poll_query_until('postgres', "SELECT count(*) > 1000 FROM made WHERE id > '$after'") or BAIL_OUT('no rows');
	return;
}

my $recovery = qr/ERROR:  (?:55000: )?cannot use ordering "durable" during recovery\n.*DETAIL:  A standby cannot write the upper bound of ordering "durable"\.\n.*HINT:  Generate UUIDs on the primary/s;
my $primary = $node;
$node->safe_psql('postgres', 'CREATE TABLE enough ()');
$node->safe_psql('postgres', 'CREATE DATABASE unlogged');
$node->safe_psql('unlogged', 'CREATE EXTENSION fast_uuid; ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
my @writers = map { write_rows($primary) } 1 .. 3;
wait_for_rows($cascaded, $greatest{postgres});
{
	local $node = $standby;
	refused("SELECT $_", $recovery, "on a standby, $_")
	  foreach 'uuidv7_fast()', "uuidv7_fast('getrandom')", "uuidv7_fast(interval '0')", 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)',
	  'fast_uuid_observe(uuidv7_fast_min(now()))', 'fast_uuid_reset_ordering()';
	is(stats('upper_bound IS NOT NULL'), 't', 'on a standby: the upper bound is shown');
	{
		local $database = 'unlogged';
		is(stats('upper_bound IS NULL'), 't', 'on a standby, an unlogged sequence: it has no upper bound there');
	}
	my $session = session();
	is($session->query('SELECT uuidv7_fast()'), '', 'on a standby, a session that stays: no UUID');
	like($session->{stderr}, $recovery, 'on a standby, a session that stays: the error');
	$session->{stderr} = '';

	$standby->promote;
	$greatest{postgres} = greatest_row();
	cmp_ok($greatest{postgres}, 'gt', $node->safe_psql('postgres', 'SELECT uuidv7_fast_max(now())'), 'promoted: rows came whose time is ahead of the clock');
	exceed('promoted, the session that stayed', $session->query_safe('SELECT uuidv7_fast()'));
	exceed('promoted', ids('SELECT uuidv7_fast_set(1000)'));
	$session->quit;

	# And at once the next one.
	push @writers, write_rows($standby);
	wait_for_rows($cascaded, $greatest{postgres});
	end_incarnation($standby, 'immediate');
}
{
	local $node = $cascaded;
	refused('SELECT uuidv7_fast()', $recovery, 'on a cascaded standby');
	$cascaded->promote;
	$greatest{postgres} = greatest_row();
	cmp_ok($greatest{postgres}, 'gt', $node->safe_psql('postgres', 'SELECT uuidv7_fast_max(now())'), 'promoted in turn: rows came whose time is ahead of the clock');
	exceed('promoted in turn', ids('SELECT unnest(uuidv7_fast_array(1000))'));
	next_incarnation('SIGKILL', 7200);
	exceed('promoted in turn, in the next incarnation', ids('SELECT uuidv7_fast()'));
	$cascaded->stop;
}
$primary->safe_psql('postgres', 'INSERT INTO enough DEFAULT VALUES');
is(scalar(grep { IPC::Run::finish($_) } @writers), 3, 'the old primary wrote all the time');
$primary->stop;

done_testing();

# The feed's order on a standby that is promoted while the primary's sessions write, and
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

new_durable_node();
$node->safe_psql('postgres', 'CREATE TABLE made (id uuid DEFAULT uuidv7_feed_id())');
next_incarnation('fast', 3600);
exceed('the primary', ids($generate));

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
			'psql', '-XqAt', '-d', $on->connstr('postgres'), '-c', q{
DO $$
BEGIN
  FOR i IN 1..1000000 LOOP
    INSERT INTO made DEFAULT VALUES;
    COMMIT;
    INSERT INTO made SELECT FROM generate_series(1, 20);
    COMMIT;
    EXIT WHEN i % 10 = 0 AND EXISTS (SELECT FROM enough);
  END LOOP;
END $$}
		],
		'<', '/dev/null', '>&', \my $output, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

# Returns whether its time is ahead of the clock.
sub note_greatest_row
{
	my ($ns, $ahead) = split /\|/, $node->safe_psql('postgres', 'SELECT uuidv7_fast_ns(id), id > uuidv7_fast_max(now()) FROM made ORDER BY id DESC LIMIT 1');
	$greatest{postgres} = $ns;
	return $ahead;
}

sub wait_for_rows
{
	my ($on, $after) = @_;
	$on->poll_query_until('postgres', "SELECT count(*) > 1000 FROM made WHERE uuidv7_fast_ns(id) > $after") or BAIL_OUT('no rows');
	return;
}

my $recovery = qr/ERROR:  (?:55000: )?cannot use the order of feed ids during recovery\n.*DETAIL:  A standby cannot write the upper bound\.\n.*HINT:  Use it on the primary/s;
my $primary = $node;
$node->safe_psql('postgres', 'CREATE TABLE enough ()');
$node->safe_psql('postgres', 'CREATE DATABASE unlogged');
$node->safe_psql('unlogged', 'CREATE EXTENSION fast_uuid; ALTER SEQUENCE fast_uuid_upper_bound SET UNLOGGED');
my @writers = map { write_rows($primary) } 1 .. 3;
wait_for_rows($cascaded, $greatest{postgres});
{
	local $node = $standby;
	refused("SELECT $_", $recovery, "on a standby, $_")
	  foreach 'uuidv7_feed_id()', "uuidv7_feed_id('getrandom')", 'uuidv7_feed_position()', 'uuidv7_feed_observe(uuidv7_fast_min(now()))',
	  'uuidv7_feed_position_observe(1)', 'uuidv7_feed_reset()';
	is(stats('upper_bound IS NOT NULL'), 't', 'on a standby: the upper bound is shown');
	{
		local $database = 'unlogged';
		is(stats('upper_bound IS NULL'), 't', 'on a standby, an unlogged sequence: it has no upper bound there');
	}
	my $session = session();
	is($session->query('SELECT uuidv7_feed_id()'), '', 'on a standby, a session that stays: no UUID');
	like($session->{stderr}, $recovery, 'on a standby, a session that stays: the error');
	$session->{stderr} = '';

	$standby->promote;
	is(note_greatest_row(), 't', 'promoted: rows came whose time is ahead of the clock');
	exceed('promoted, the session that stayed', $session->query_safe($generate));
	exceed('promoted', ids('SELECT uuidv7_feed_id() FROM generate_series(1, 1000)'));
	$session->quit;

	# And at once the next one.
	push @writers, write_rows($standby);
	wait_for_rows($cascaded, $greatest{postgres});
	end_incarnation($standby, 'immediate');
}
{
	local $node = $cascaded;
	refused('SELECT uuidv7_feed_id()', $recovery, 'on a cascaded standby');
	$cascaded->promote;
	is(note_greatest_row(), 't', 'promoted in turn: rows came whose time is ahead of the clock');
	exceed('promoted in turn', ids('SELECT uuidv7_feed_position() FROM generate_series(1, 1000)'));
	next_incarnation('SIGKILL', 7200);
	exceed('promoted in turn, in the next incarnation', ids($generate));
	$cascaded->stop;
}
$primary->safe_psql('postgres', 'INSERT INTO enough DEFAULT VALUES');
is(scalar(grep { IPC::Run::finish($_) } @writers), 3, 'the old primary wrote all the time');
$primary->stop;

done_testing();

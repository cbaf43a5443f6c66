# The watermark only reads, and holds until the server restarts.  One that is stored
# together with an id of the transaction that stores it outlives the server: crashes with
# the clock stepped back, and a promotion.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use FakeClock;

require_fake_clock();
new_durable_node();
$node->safe_psql('postgres', q{
CREATE TABLE made (id uuid DEFAULT uuidv7_feed_id());
CREATE TABLE id_first (id uuid, upto uuid);
CREATE TABLE upto_first (upto bigint, id bigint);
CREATE TABLE alone (upto uuid);
INSERT INTO id_first DEFAULT VALUES; INSERT INTO upto_first DEFAULT VALUES; INSERT INTO alone DEFAULT VALUES});

# Store it while the clock is ahead of the upper bound; its nanosecond.
my %set = (
	id_first => 'id = uuidv7_feed_id(), upto = uuidv7_feed_watermark()',
	upto_first => 'upto = uuidv7_feed_position_watermark(), id = uuidv7_feed_position()',
	alone => 'upto = uuidv7_feed_watermark()');

sub store
{
	my ($table) = @_;
	set_clock_offset($node, sprintf('%+.3f', stats('extract(epoch FROM upper_bound) + 60') - time));
	return nanoseconds($node->safe_psql('postgres', "UPDATE $table SET $set{$table} RETURNING upto"));
}

exceed('the first', ids($generate));
foreach my $n (1 .. 9)
{
	my $table = ('id_first', 'upto_first', 'alone')[ $n % 3 ];
	my $way = ('SIGKILL', 'immediate')[ $n % 2 ];
	my ($upto) = store($table);
	next_incarnation($way, 3600);
	my ($ns) = ids($generate);
	is($ns >= $upto, $table ne 'alone', "$way with the clock back, stored in $table: " . ($table eq 'alone' ? 'below it' : 'not below it'));
}

# On a standby that has the row, once it is promoted.
{
	$node->backup('copy');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'copy', has_streaming => 1);
	set_clock_offset($standby, sprintf('%+d', -$behind - 7200));
	begin_incarnation($standby);
	my ($upto) = store('id_first');
	$node->wait_for_catchup($standby);
	$node->stop('immediate');
	$standby->promote;
	is($standby->safe_psql('postgres', 'SELECT uuidv7_fast_ns(upto) FROM id_first'), $upto, 'a standby has the row');
	cmp_ok($standby->safe_psql('postgres', 'SELECT uuidv7_feed_position()'), '>', $upto, '... and generates above the bound once it is promoted');
	$standby->stop;
	begin_incarnation($node);
}

# Planned, executed and polled, in READ ONLY transactions too: no record of ours.
{
	my $session = session();
	my $generic = sub {
		my $from = shift // '0/0';
		my ($out) = run_command([ 'pg_waldump', '-r', 'Generic', '-p', $node->data_dir . '/pg_wal', '-s', $from,
				'-e', $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()') ]);
		return scalar(my @records = $out =~ /^rmgr: Generic/mg);
	};
	my $from = $node->safe_psql('postgres', 'SELECT pg_switch_wal(); CHECKPOINT; SELECT pg_current_wal_insert_lsn()') =~ s/.*\n//sr;
	$session->query_safe("SET default_transaction_read_only = $_; EXPLAIN SELECT * FROM made WHERE id < uuidv7_feed_watermark();"
		  . 'SELECT count(*) FROM made WHERE id < uuidv7_feed_watermark(); DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM uuidv7_feed_watermark(); COMMIT; END LOOP; END $$')
	  foreach 'off', 'on';
	$node->safe_psql('postgres', 'CHECKPOINT');
	is($generic->($from), 0, 'the watermark writes no WAL');
	run(observe('upper_bound'));
	$node->safe_psql('postgres', 'CHECKPOINT');
	cmp_ok($generic->($from), '>', 0, '... as a feed id does');
	$session->quit;
}
$node->stop;
done_testing();

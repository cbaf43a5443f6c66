# The watermark only reads, and holds until the server restarts.  One that is stored together
# with an id of the transaction that stores it, as doc/feed-recipes.md does in the row for
# readers elsewhere and in closed windows, outlives crashes with the clock stepped back.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use Examples;
use FakeClock;

new_durable_node();
my @recipe = map { $_->{sql} } examples('doc/change-feeds.md', 'doc/feed-recipes.md');
my ($outbox) = grep { /CREATE TABLE outbox \(/ } @recipe;
my ($create_row, $update_row) = map { /(CREATE TABLE feed_watermark.*?)(UPDATE.*?);/s } @recipe;
my ($hours) = grep { /outbox_hours/ } @recipe;
my ($create_hours, $close) = $hours =~ /(.*?)(INSERT INTO outbox_hours \(begins.*);/s;
$close =~ s/date_trunc\('hour', (.*?), 'UTC'\)\) AS ends/$1) AS ends/ or die $close;
$node->safe_psql('postgres', qq{
$outbox $create_row $create_hours
CREATE TABLE positions (upto bigint, id bigint);
CREATE TABLE alone (upto uuid);
INSERT INTO positions DEFAULT VALUES;
INSERT INTO alone DEFAULT VALUES});

# Each returns the bound that it stores.
my %store = (
	'the row' => "$update_row RETURNING upto",
	'a closed window' => "$close RETURNING ends",
	'positions' => 'UPDATE positions SET upto = uuidv7_feed_position_watermark(),'
	  . ' id = uuidv7_feed_position() RETURNING upto',
	'alone' => 'UPDATE alone SET upto = uuidv7_feed_watermark() RETURNING upto');

exceed('the first', ids($generate));
foreach my $name (sort keys %store)
{
	foreach my $way ('SIGKILL', 'immediate')
	{
		# While the clock is ahead of the upper bound.
		my $ahead = stats('extract(epoch FROM upper_bound) + 60') - time;
		set_clock_offset($node, sprintf('%+.3f', $ahead));
		my ($upto) = nanoseconds($node->safe_psql('postgres', $store{$name}));
		next_incarnation($way, 3600);
		my ($ns) = ids($generate);
		my $is_below = $ns < $upto;
		is($is_below, $name eq 'alone', "$name, $way with the clock back: are new ids below it?");
	}
}

# Planned, executed and polled, in READ ONLY transactions too: no record of ours.
my $wal = $node->data_dir . '/pg_wal';

sub our_records
{
	my ($from) = @_;
	my $end = $node->safe_psql('postgres', 'CHECKPOINT; SELECT pg_current_wal_flush_lsn()');
	my ($out) = run_command([ 'pg_waldump', '-r', 'Generic', '-p', $wal, '-s', $from, '-e', $end ]);
	return scalar(() = $out =~ /^rmgr: Generic/mg);
}

$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $from = $node->safe_psql('postgres', 'CHECKPOINT; SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', qq{
SET default_transaction_read_only = $_;
EXPLAIN SELECT * FROM outbox WHERE id < uuidv7_feed_watermark();
SELECT count(*) FROM outbox WHERE id < uuidv7_feed_watermark();
DO \$\$ BEGIN FOR i IN 1..1000 LOOP PERFORM uuidv7_feed_watermark(); COMMIT; END LOOP; END \$\$
}) foreach 'off', 'on';
is(our_records($from), 0, 'the watermark writes no WAL');
run(observe('upper_bound'));
cmp_ok(our_records($from), '>', 0, '... as a feed id does');
$node->stop;
done_testing();

# A feed from a table that gets partitions meanwhile.  The statement that reads has planned
# with the partitions from before, and takes its snapshot after: it waits in between.
# Rows are lost where a partition is attached by the transaction that inserts them, below
# the watermark as below an xid8; not in the ways that doc/change-feeds.md recommends.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $node = start_in_order('partitions', "fast_uuid.max_clock_lead = '1 min'");

# What a transaction does before it inserts the first row of partition %n, and which readers
# lose such rows.
my $of_tenant = 'PARTITION BY LIST (tenant)';
my $attach = 'CREATE TABLE outbox_%n (LIKE outbox INCLUDING DEFAULTS); ALTER TABLE outbox ATTACH PARTITION outbox_%n FOR VALUES';
my $range = "IN (%n)";
my %way = (
	'attached' => { by => $of_tenant, does => "$attach $range", loses => { watermark => 1, xid8 => 1 } },
	'attached, the parent locked first' => { by => $of_tenant, does => "LOCK TABLE outbox; $attach $range" },
	'CREATE TABLE ... PARTITION OF' => { by => $of_tenant, does => "CREATE TABLE outbox_%n PARTITION OF outbox FOR VALUES $range" },
	'attached, of ranges of the id' => {
		by => 'PARTITION BY RANGE (id)',
		does => "INSERT INTO outbox (tenant) VALUES (0); $attach FROM (pg_temp.bound(%n)) TO (pg_temp.bound(%n + 1)); SELECT fast_uuid_observe(pg_temp.bound(%n))",
		loses => { xid8 => 1 } });

# A reader's condition, and its position after a row.
my %reader = (
	watermark => { position => 'id', below => 'uuidv7_fast_watermark()', first => '00000000-0000-0000-0000-000000000000' },
	xid8 => { position => 'txid', below => 'pg_snapshot_xmin(pg_current_snapshot())', first => 0 });

foreach my $name (sort keys %way)
{
	my %way = %{ $way{$name} };
	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS outbox;
CREATE TABLE outbox (id uuid DEFAULT uuidv7_fast(), tenant int, txid xid8 DEFAULT pg_current_xact_id()) $way{by};
CREATE TABLE outbox_other PARTITION OF outbox DEFAULT;
CREATE TABLE outbox_first PARTITION OF outbox FOR VALUES } . ($way{by} eq $of_tenant ? 'IN (0)' : 'FROM (MINVALUE) TO (uuidv7_fast_min(now() + interval \'30 s\'))'));

	my $writer = connect_to($node, 'writer');
	run_in($writer, q{CREATE FUNCTION pg_temp.bound(n int) RETURNS uuid IMMUTABLE LANGUAGE sql AS 'SELECT uuidv7_fast_min(%s)'}
		  =~ s/%s/"timestamptz ''" . $node->safe_psql('postgres', q{SELECT now() + interval '29 s'}) . "'' + n * interval ''1 s''"/er);
	my %session  = map { $_ => connect_to($node, "reader $_") } keys %reader;
	my %position = map { $_ => $reader{$_}{first} } keys %reader;
	my (%seen, $waited);
	my $sql = sub {
		my ($position, $below) = @{ $reader{ $_[0] } }{qw(position below)};
		return "SELECT id || ' ' || $position FROM outbox WHERE $position > '$position{$_[0]}' AND $position < $below ORDER BY $position, id";
	};
	my $receive = sub {
		my ($reader) = @_;
		my $rows = $session{$reader}->receive;
		die $session{$reader}{error} if $session{$reader}{error} ne '';
		$seen{"$reader $1"} = 1 while $rows =~ /^(\S+) /mg;
		$position{$reader} = $1 if $rows =~ /(\S+)\z/;
	};
	foreach my $n (1 .. 10)
	{
		run_in($writer, 'BEGIN');
		run_in($writer, $way{does} =~ s/%n/$n/gr);
		run_in($writer, 'INSERT INTO outbox (tenant) VALUES (' . ($way{by} eq $of_tenant ? "$n), (0" : $n) . ')');
		$session{$_}->send($sql->($_)) foreach keys %reader;
		$waited += $node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE application_name LIKE 'reader %' AND wait_event_type = 'Lock'");
		run_in($writer, 'COMMIT');
		$receive->($_) foreach keys %reader;
	}
	is($waited, 10, "$name: the readers wait in planning, each time");
	my $marker = run_in($writer, 'INSERT INTO outbox (tenant) VALUES (0) RETURNING id');
	my @rows = split /\n/, $node->safe_psql('postgres', 'SELECT id FROM outbox');
	foreach my $reader (sort keys %reader)
	{
		for (my $n = 0; !$seen{"$reader $marker"} && $n < 100 * $PostgreSQL::Test::Utils::timeout_default; $n++)
		{
			$session{$reader}->send($sql->($reader));
			$receive->($reader);
		}
		my $lost = grep { !$seen{"$reader $_"} } @rows;
		$way{loses}{$reader} ? cmp_ok($lost, '>', 0, "$name: rows are lost below the $reader") : is($lost, 0, "$name: no row is lost below the $reader");
	}
	$_->quit foreach $writer, values %session;
}

$node->stop;
done_testing();

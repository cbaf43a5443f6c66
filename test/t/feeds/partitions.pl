# A feed from a table that gets partitions or children meanwhile.  A reader has planned its
# statement with those from before, and takes its snapshot after: in between it waits for
# a lock.  Below the watermark as below an xid8, rows of the new table are lost, unless the
# transaction that adds it locks the parent first, as doc/change-feeds.md says; CREATE TABLE
# ... PARTITION OF does so itself.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $node = start_feed('partitions', "fast_uuid.max_clock_lead = '2 min'");

my $create = 'CREATE TABLE outbox_%n (LIKE outbox INCLUDING DEFAULTS)';
my $insert = 'INSERT INTO outbox_%n (tenant) VALUES (%n)';

# The tables that are there before.  All readers wait for outbox_last.
my $by_tenant = 'PARTITION BY LIST (tenant);
	CREATE TABLE outbox_first PARTITION OF outbox FOR VALUES IN (0);
	CREATE TABLE outbox_last PARTITION OF outbox FOR VALUES IN (-1)';
my $by_id = "PARTITION BY RANGE (id);
	CREATE TABLE outbox_first PARTITION OF outbox FOR VALUES FROM (MINVALUE) TO (bound(1));
	CREATE TABLE outbox_last PARTITION OF outbox FOR VALUES FROM (bound(21)) TO (MAXVALUE);"
  . join ';', map { "CREATE TABLE later_$_ PARTITION OF outbox FOR VALUES FROM (bound(2 * $_)) TO (bound(2 * $_ + 1))" } 1 .. 10;
my $children = '; CREATE TABLE outbox_first () INHERITS (outbox); CREATE TABLE outbox_last () INHERITS (outbox)';

# How a transaction adds table %n to them, with a row; %lock is there or not.
my %way = (
	'ATTACH PARTITION' => [ $by_tenant, "$create; $insert; %lock; ALTER TABLE outbox ATTACH PARTITION outbox_%n FOR VALUES IN (%n)" ],
	'ATTACH PARTITION, for a range of the id' => [ $by_id,
		"$create; SELECT uuidv7_feed_observe(bound(2 * %n - 1)); $insert; SELECT uuidv7_feed_observe(bound(2 * %n)); %lock;"
		  . ' ALTER TABLE outbox ATTACH PARTITION outbox_%n FOR VALUES FROM (bound(2 * %n - 1)) TO (bound(2 * %n))' ],
	'ATTACH PARTITION, and the row is of the next transaction' => [ $by_tenant,
		"$create; %lock; ALTER TABLE outbox ATTACH PARTITION outbox_%n FOR VALUES IN (%n); COMMIT; BEGIN; $insert" ],
	'INHERIT' => [ $children, "$create; $insert; %lock; ALTER TABLE outbox_%n INHERIT outbox" ],
	'CREATE TABLE ... INHERITS' => [ $children, "%lock; CREATE TABLE outbox_%n () INHERITS (outbox); $insert" ]);

# A reader's condition, and its position after a row.
my %reader = (
	watermark => { position => 'id', below => 'uuidv7_feed_watermark()', first => '00000000-0000-0000-0000-000000000000' },
	xid8 => { position => 'txid', below => 'pg_snapshot_xmin(pg_current_snapshot())', first => 0 });

# Ten tables are added so, each by a transaction that then inserts a row into one that was
# there.  Returns how many rows each reader has lost.
sub rows_lost
{
	my ($tables, $does) = @_;
	my $start = $node->safe_psql('postgres', q{SELECT uuidv7_fast_timestamp(uuidv7_feed_id()) + interval '10 s'});
	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS outbox CASCADE;
CREATE OR REPLACE FUNCTION bound(n int) RETURNS uuid IMMUTABLE LANGUAGE sql AS
	\$\$ SELECT uuidv7_fast_min(timestamptz '$start' + n * interval '1 s') \$\$;
CREATE TABLE outbox (id uuid DEFAULT uuidv7_feed_id(), tenant int, txid xid8 DEFAULT pg_current_xact_id()) $tables;
${\ guard('outbox')}});
	my ($writer, $blocker) = map { connect_to($node, $_) } qw(writer blocker);
	my %session  = map { $_ => connect_to($node, "reader $_") } keys %reader;
	my %position = map { $_ => $reader{$_}{first} } keys %reader;
	my %seen;
	my $into = $tables eq $children ? 'outbox_first' : 'outbox';
	my $ask = sub {
		my ($name) = @_;
		my ($position, $below) = @{ $reader{$name} }{qw(position below)};
		$session{$name}->send("SELECT id || ' ' || $position FROM outbox WHERE $position > '$position{$name}' AND $position < $below ORDER BY $position, id");
	};
	my $receive = sub {
		my ($name) = @_;
		my $rows = $session{$name}->receive;
		die $session{$name}{error} if $session{$name}{error} ne '';
		$seen{"$name $1"} = 1 while $rows =~ /^(\S+) /mg;
		$position{$name} = $1 if $rows =~ /(\S+)\z/;
	};
	my $until = sub {
		my ($condition) = @_;
		$node->poll_query_until('postgres', "SELECT $condition FROM pg_stat_activity") or BAIL_OUT("never: $condition");
	};

	foreach my $n (1 .. 10)
	{
		run_in($blocker, 'BEGIN; LOCK TABLE outbox_last');
		$ask->($_) foreach keys %reader;
		$until->("count(*) FILTER (WHERE application_name LIKE 'reader %' AND wait_event_type = 'Lock') = 2");
		my $transaction = "BEGIN; $does; INSERT INTO $into (tenant) VALUES (0); COMMIT; SELECT 'ended'" =~ s/%n/$n/gr;
		$writer->send("/* $n */ $transaction");
		$until->("bool_or(application_name = 'writer' AND query LIKE '/* $n */%' AND (state = 'idle' OR wait_event_type = 'Lock'))");
		run_in($blocker, 'COMMIT');
		$receive->($_) foreach keys %reader;
		$writer->receive;
		die $writer->{error} if $writer->{error} ne '';
	}
	my $marker = run_in($writer, "INSERT INTO $into (tenant) VALUES (0) RETURNING id");
	foreach my $name (keys %reader)
	{
		for (my $n = 0; !$seen{"$name $marker"} && $n < 100 * $PostgreSQL::Test::Utils::timeout_default; $n++)
		{
			$ask->($name);
			$receive->($name);
		}
	}
	my @rows = split /\n/, $node->safe_psql('postgres', 'SELECT id FROM outbox');
	$_->quit foreach $writer, $blocker, values %session;
	return map { my $name = $_; ($name => scalar grep { !$seen{"$name $_"} } @rows) } keys %reader;
}

foreach my $name (sort keys %way)
{
	my ($tables, $does) = @{ $way{$name} };
	my %lost = rows_lost($tables, $does =~ s/%lock; *//r);
	is_deeply(\%lost, { watermark => 10, xid8 => 10 }, "$name: the row of each new table is lost");
	%lost = rows_lost($tables, $does =~ s/%lock/LOCK TABLE outbox/r);
	is_deeply(\%lost, { watermark => 0, xid8 => 0 }, "$name, the parent locked before: no row is lost");
}
my %lost = rows_lost($by_tenant, 'CREATE TABLE outbox_%n PARTITION OF outbox FOR VALUES IN (%n); INSERT INTO outbox (tenant) VALUES (%n)');
is_deeply(\%lost, { watermark => 0, xid8 => 0 }, 'CREATE TABLE ... PARTITION OF: no row is lost');

$node->stop;
done_testing();

# A feed from a table that gets partitions or children meanwhile.  A reader has planned its
# statement with those from before, and takes its snapshot after: in between it waits for a
# lock.  Rows of the new table are lost, unless the transaction that adds it locks the parent
# first, as doc/change-feeds.md says; CREATE TABLE ... PARTITION OF does so itself.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $node = start_feed('partitions', '');

# The tables that are there before.  The reader waits for outbox_last.
my $by_tenant = q{PARTITION BY LIST (tenant);
	CREATE TABLE outbox_first PARTITION OF outbox FOR VALUES IN (0);
	CREATE TABLE outbox_last PARTITION OF outbox FOR VALUES IN (-1)};
my $children = q{; CREATE TABLE outbox_first () INHERITS (outbox);
	CREATE TABLE outbox_last () INHERITS (outbox)};

sub read_after
{
	my ($position) = @_;
	return "SELECT tenant || ' ' || id FROM outbox"
	  . " WHERE id > '$position' AND id < uuidv7_feed_watermark() ORDER BY id";
}

# A transaction adds a table with a row of tenant 1, and another row to what was there, while
# a reader waits.  Is the first row read, then or later?
sub is_read
{
	my ($tables, $add) = @_;
	$node->safe_psql('postgres', qq{
DROP TABLE IF EXISTS outbox CASCADE;
CREATE TABLE outbox (id uuid DEFAULT uuidv7_feed_id(), tenant int) $tables;
${\ guard('outbox')}});
	my $insert = 'INSERT INTO ' . ($tables eq $children ? 'outbox_first' : 'outbox');
	my ($reader, $writer, $blocker) = map { connect_to($node, $_) } 'reader', 'writer', 'blocker';

	run_in($blocker, 'BEGIN; LOCK TABLE outbox_last');
	$reader->send(read_after('00000000-0000-0000-0000-000000000000'));
	wait_for($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'reader'"
		  . " AND wait_event_type = 'Lock'");
	$writer->send("BEGIN; $add; $insert (tenant) VALUES (0); COMMIT");
	wait_for($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'writer'"
		  . " AND query LIKE 'BEGIN;%' AND (state = 'idle' OR wait_event_type = 'Lock')");
	run_in($blocker, 'COMMIT');
	my $rows = $reader->receive;
	$writer->receive;
	die $writer->{error} if $writer->{error} ne '';

	# Until it comes to a later row.
	my $last = run_in($writer, "$insert (tenant) VALUES (0) RETURNING id");
	while ($rows !~ /$last/)
	{
		my $position = $rows =~ / (\S+)\z/ ? $1 : '00000000-0000-0000-0000-000000000000';
		my $more = run_in($reader, read_after($position));
		$rows .= "\n$more" if $more ne '';
	}
	return $rows =~ /^1 /m ? 'read' : 'lost';
}

my $create = 'CREATE TABLE outbox_1 (LIKE outbox INCLUDING DEFAULTS)';
my $insert = 'INSERT INTO outbox_1 (tenant) VALUES (1)';
my $attach = 'ALTER TABLE outbox ATTACH PARTITION outbox_1 FOR VALUES';
my %way = (
	'ATTACH PARTITION' => { to => $by_tenant, by => "$create; $insert; LOCK; $attach IN (1)" },
	'ATTACH PARTITION, and the row is of the next transaction' =>
	  { to => $by_tenant, by => "$create; LOCK; $attach IN (1); COMMIT; BEGIN; $insert" },
	'INHERIT' =>
	  { to => $children, by => "$create; $insert; LOCK; ALTER TABLE outbox_1 INHERIT outbox" },
	'CREATE TABLE ... INHERITS' =>
	  { to => $children, by => "LOCK; CREATE TABLE outbox_1 () INHERITS (outbox); $insert" });
foreach my $name (sort keys %way)
{
	my ($tables, $add) = @{ $way{$name} }{qw(to by)};
	is(is_read($tables, $add =~ s/LOCK; //r), 'lost', "$name: the row is lost");
	is(is_read($tables, $add =~ s/LOCK/LOCK TABLE outbox/r), 'read', "$name, the parent locked");
}
is(is_read($by_tenant, 'CREATE TABLE outbox_1 PARTITION OF outbox FOR VALUES IN (1);'
	. 'INSERT INTO outbox (tenant) VALUES (1)'), 'read', 'CREATE TABLE ... PARTITION OF');
$node->stop;
done_testing();

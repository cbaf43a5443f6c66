# The watermark as a row, for readers elsewhere: sessions write into a table, and one repeats
# the page's UPDATE of the row.  On a standby and on a logical subscriber readers by the page's
# statement, below that row, get each committed row exactly once, in ascending order; others
# miss rows.  In the middle the primary crashes, and the standby, whose clock is an hour
# behind, is promoted under its readers.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FakeClock;
use FeedWriters;

my @recipe = map { $_->{sql} } examples('doc/change-feeds.md', 'doc/feed-recipes.md');
my ($outbox) = map { /(CREATE TABLE outbox .*?FUNCTION uuidv7_feed_guard.*?;)/s } @recipe;
my ($create, $update) = map { /(CREATE TABLE feed_watermark.*?)(UPDATE.*?;)/s } @recipe;
my ($below_row) = map { /(SELECT \* .*\(SELECT upto FROM feed_watermark WHERE name = 'outbox'\).*?;)/s } @recipe;
$below_row =~ s/'0{8}-[-0]*'/\$1/ or die;
my $naive = $below_row =~ s/ AND id < \(.*?\)//r;

my $primary = start_feed('primary', q{
max_connections = 40
max_prepared_transactions = 60
wal_level = logical
max_wal_senders = 10
}, allows_streaming => 1);
$primary->safe_psql('postgres', qq{
$outbox
INSERT INTO outbox SELECT FROM generate_series(1, 10);
$create
CREATE PUBLICATION feed FOR TABLE outbox, feed_watermark});

$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
set_clock_offset($standby, '-3600');
start_with_fake_clock($standby, keep_clock => 1);

# It has the rows and the bound, and not even the extension.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->start;
$subscriber->safe_psql('postgres', qq{
CREATE TABLE outbox (id uuid PRIMARY KEY, payload jsonb);
CREATE TABLE feed_watermark (name text PRIMARY KEY, id uuid, upto uuid);
CREATE SUBSCRIPTION feed CONNECTION '${\ $primary->connstr} dbname=postgres' PUBLICATION feed});
wait_for($subscriber, "SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'");

my $load = FeedWriters->new_load;
foreach my $node ($standby, $subscriber)
{
	$load->reader($node->name, $node, $below_row);
	$load->reader($node->name . ', naively', $node, $naive);
}

# On the primary, and when that is gone, on the promoted standby.
my $insert = 'INSERT INTO outbox DEFAULT VALUES';
my $writes_on = sub { -e $load->file('promoted') ? $standby : $primary };
foreach my $n (1 .. 10)
{
	$load->writer("writer $n", $writes_on, sub {
		my ($session, $number) = @_;
		write_transaction($session, "$n $number", $insert, in_savepoints($insert));
	}, survives => $server_down);
}
$load->writer('updater', $writes_on, sub { run_in($_[0], $update); pause(5) },
	survives => $server_down);
$load->wait_for_passes($_, 30) foreach 'standby', 'subscriber';
my $late = $load->commit_late($primary, "$insert RETURNING id", "$insert RETURNING id",
	'standby, naively', 'subscriber, naively');
wait_for($_, "SELECT count(*) = 1 FROM outbox WHERE id = '$late'") foreach $standby, $subscriber;

# A session of the standby has keys, and goes on through the promotion.
my $session = connect_to($standby, 'keys');
is($session->outcome('SELECT uuidv7_feed_watermark()'), '55000', 'refused on a standby');
my $key = run_in($session, 'SELECT (uuidv7_fast_array(1000))[1000]');
my $upto = run_in($session, 'SELECT upto FROM feed_watermark');
my $count = run_in($session, "SELECT count(*) FROM outbox WHERE id < '$upto'");
$primary->stop('immediate');
$standby->promote;
append_to_file($load->file('promoted'), '');
cmp_ok(run_in($session, 'SELECT uuidv7_fast()'), 'gt', $key, 'promoted: keys go on');
like(run_in($session, 'SELECT uuidv7_feed_id()'), qr/-/, '... and it has a feed id');
$load->wait_for_passes('standby', 30);
$load->end_writers;

# What was prepared and not finished, the last bound; the subscriber gets nothing more.
finish_prepared($session) while run_in($session, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
run_in($session, $update);
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
wait_for($subscriber, 'SELECT bool_and(pid IS NULL) FROM pg_stat_subscription');
$load->end_readers;
is(run_in($session, "SELECT count(*) FROM outbox WHERE id < '$upto'"),
	$count, 'what the standby had below the row was all');

# Against the rows that a server has, or has below the row.
foreach my $node ($standby, $subscriber)
{
	my $name = $node->name;
	my $rows = 'SELECT id FROM outbox';
	$load->check("$name, naively", $node->safe_psql('postgres', $rows), 1);
	$rows .= ' WHERE id < (SELECT upto FROM feed_watermark)' if $node == $subscriber;
	$load->check($name, $node->safe_psql('postgres', $rows));
	unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, "$name: no PANIC, no failed assertion");
}
$_->stop foreach $subscriber, $standby;
done_testing();

# A watermark that is stored in a row, for readers elsewhere: sessions write, and one repeats the
# page's UPDATE of the row.  On a standby and on a logical replica readers by the page's statement,
# below that row, get each committed row exactly once, in ascending order; others miss rows.  In
# the middle the primary crashes, and the standby is promoted under its readers.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;

my @recipe = map { $_->{sql} } examples('doc/servers.md');
my ($create, $update) = map { /(CREATE TABLE stored_watermark.*?)(UPDATE.*?;)/s } @recipe;
my ($read) = map { /(SELECT \*\s+FROM outbox.*?stored_watermark.*?;)/s } @recipe;
$read =~ s/\*/lpad(id::text, 19, '0')/ or die;
$read =~ s/id > 0/id > \$1/ or die;
my $naive = $read =~ s/ AND id < \(.*?\)//r;
my $rows = "SELECT lpad(id::text, 19, '0') FROM outbox";

my $primary = start_node('primary', "max_connections = 40\nwal_level = logical\nmax_wal_senders = 10",
	allows_streaming => 'logical');
$primary->safe_psql('postgres', table('outbox') . $create
	  . q{INSERT INTO outbox (way) SELECT 'x' FROM generate_series(1, 10);
CREATE PUBLICATION feed FOR TABLE outbox, stored_watermark});

$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

# It has the rows and the watermark, and not even the extension.
my $replica = PostgreSQL::Test::Cluster->new('replica');
$replica->init;
$replica->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 100ms');
$replica->start;
$replica->safe_psql('postgres', qq{
CREATE TABLE outbox (id bigint PRIMARY KEY, way text);
CREATE TABLE stored_watermark (name text PRIMARY KEY, upto bigint);
CREATE SUBSCRIPTION feed CONNECTION '${\ $primary->connstr} dbname=postgres' PUBLICATION feed});
wait_for($replica, "SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'");

my $load = FeedWriters->new_load;
foreach my $node ($standby, $replica)
{
	$load->reader($node->name, $node, $read, from => 0);
	$load->reader($node->name . ', naively', $node, $naive, from => 0);
}

# On the primary, and when that is gone, on the promoted standby.
my $insert = "INSERT INTO outbox (way) VALUES ('x')";
my $writes_on = sub { -e $load->file('promoted') ? $standby : $primary };
foreach my $n (1 .. 8)
{
	$load->writer("writer $n", $writes_on, sub {
		my ($session, $number) = @_;
		run_in($session, 'SET synchronous_commit = ' . (rand() < 0.5 ? 'on' : 'off'));
		write_transaction($session, "$n $number", $insert, in_savepoints($insert));
	}, survives => $server_down);
}
$load->writer('updater', $writes_on, sub { run_in($_[0], $update); pause(5) }, survives => $server_down);
$load->wait_for_passes($_, 30) foreach 'standby', 'replica';
my $returning = "$insert RETURNING lpad(id::text, 19, '0')";
my $late = $load->commit_late($primary, $returning, $returning, 'standby, naively', 'replica, naively');
wait_for($_, "SELECT count(*) = 1 FROM outbox WHERE id = '$late'") foreach $standby, $replica;

# What the standby has below the row is all that there will ever be.
my $session = connect_to($standby, 'count');
my ($upto, $count) = split / /, run_in($session,
	"SELECT upto || ' ' || (SELECT count(*) FROM outbox WHERE id < upto) FROM stored_watermark");
$primary->stop('immediate');
$standby->promote;
append_to_file($load->file('promoted'), '');
$load->wait_for_passes('standby', 30);
$load->end_writers;

# What was prepared and not finished, the last watermark; the replica gets nothing more.
finish_prepared($session) while run_in($session, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
run_in($session, $update);
$replica->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
wait_for($replica, 'SELECT bool_and(pid IS NULL) FROM pg_stat_subscription');
$load->end_readers;
is(run_in($session, "SELECT count(*) FROM outbox WHERE id < $upto"), $count,
	'what the standby had below the row was all');

# Against the rows that a server has, or has below the row.
foreach my $node ($standby, $replica)
{
	my $name = $node->name;
	$load->check("$name, naively", $node->safe_psql('postgres', $rows), 1);
	my $below = $node == $replica ? ' WHERE id < (SELECT upto FROM stored_watermark)' : '';
	$load->check($name, $node->safe_psql('postgres', $rows . $below));
}
$_->stop foreach $replica, $standby;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, $_->name . ': no PANIC, and no failed assertion')
  foreach $primary, $standby, $replica;
done_testing();

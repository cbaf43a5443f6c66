# Commits that are lost, by a failover to a standby that was behind, or a restore to an earlier
# time.  A position in the database is right afterwards.  One that a consumer keeps elsewhere can
# be above numbers that are given again: the check of servers.md tells, and skip() puts new numbers
# above it.  Copies of a database, and a logical replica that takes over, go on by their own.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use RawSession;

my ($check) = map { $_->{sql} } grep { $_->{sql} =~ /pg_walfile_name/ } examples('doc/servers.md');
ok($check, 'the guide has the check');

my $insert = "INSERT INTO outbox (way) VALUES ('x')";
my $many = "INSERT INTO outbox (way) SELECT 'x' FROM generate_series(1, 100)";
my $read_on = 'UPDATE consumers SET position = coalesce((SELECT max(id) FROM outbox'
  . " WHERE id > position AND ${\ below('outbox')}), position) RETURNING position";

# A reader that keeps its position elsewhere, with what the check had said.
my %elsewhere;

sub read_elsewhere
{
	my ($server) = @_;
	my $rows = $server->safe_psql('postgres', "SELECT id FROM outbox WHERE id > $elsewhere{position}"
		  . " AND ${\ below('outbox')} ORDER BY id");
	my @rows = split /\n/, $rows;
	$elsewhere{position} = $rows[-1] // $elsewhere{position};
	return scalar @rows;
}

sub where_it_is
{
	my ($server) = @_;
	my ($place, $last) = split /\|/, $server->safe_psql('postgres', $check);
	return { place => $place, last => $last };
}

# After commits were lost: both readers, the check, and the way out of it.
sub check_lost
{
	my ($name, $server) = @_;
	my $all = $server->safe_psql('postgres', "SELECT count(*), max(id) FROM outbox");
	my $in_database = $server->safe_psql('postgres', 'SELECT position FROM consumers');
	my ($rows) = $server->safe_psql('postgres', "SELECT count(*) FROM outbox WHERE id > $in_database AND ${\ below('outbox')}");
	is($rows, (split /\|/, $all)[1] - $in_database, "$name: the position in the database has before it what it has not read");
	my $now = where_it_is($server);
	isnt($now->{place}, $elsewhere{place}, "$name: the check tells by the place");
	cmp_ok($elsewhere{position}, '>', $now->{last}, "$name: ... and by the position, as long as it is above");

	# What would happen without it.
	$server->safe_psql('postgres', $insert);
	is(read_elsewhere($server), 0, "$name: a position elsewhere misses what is new");
	like($server->safe_psql('postgres', $read_on), qr/^\d+$/, "$name: the one in the database has it");
	is($server->safe_psql('postgres', 'SELECT max(id) = (SELECT position FROM consumers) FROM outbox'), 't', '... to the last');

	# Beside a writer that has drawn, for which it waits.
	my ($writer, $dba) = map { RawSession->start($server) } 1 .. 2;
	$writer->query_safe($_) foreach 'BEGIN', $insert;
	$dba->send("SELECT fast_feed.skip('outbox_id_seq', $elsewhere{position})");
	wait_until_blocked($server, $dba);
	$writer->query_safe('COMMIT');
	is($dba->receive, $elsewhere{position}, "$name: skip() waits for a writer");
	$server->safe_psql('postgres', $insert) foreach 1 .. 3;
	is(read_elsewhere($server), 3, "$name: after skip() the position elsewhere misses nothing new");
	%elsewhere = (%elsewhere, %{ where_it_is($server) });
	return;
}

my $node = start_node('primary', "wal_level = logical\nmax_wal_senders = 8\narchive_mode = on\narchive_command = ''",
	allows_streaming => 'logical');
$node->enable_archiving;
$node->restart;
$node->safe_psql('postgres', table('outbox') . 'CREATE TABLE consumers (position bigint); INSERT INTO consumers VALUES (0);' . $many);
$node->backup('backup');
$node->safe_psql('postgres', $many);
$node->safe_psql('postgres', "SELECT pg_create_restore_point('before')");
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
is($node->safe_psql('postgres', $read_on), 200, 'the position in the database');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
%elsewhere = (position => 0, %{ where_it_is($node) });
is(read_elsewhere($node), 200, 'the position elsewhere');
is_deeply({ %elsewhere }, { %elsewhere, %{ where_it_is($node) } }, 'the check says the same');

# A hundred rows, which the standby does not get, and which a consumer has read elsewhere.
$standby->stop;
$node->safe_psql('postgres', $many);
$node->safe_psql('postgres', 'CHECKPOINT');
my $archived = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
is(read_elsewhere($node), 100, 'a hundred rows that will be lost');
$node->poll_query_until('postgres', "SELECT last_archived_wal >= '$archived' FROM pg_stat_archiver") or die;
$node->stop('immediate');
$standby->append_conf('postgresql.conf', "primary_conninfo = ''");
$standby->start;
$standby->promote;
my %at_fail_over = %elsewhere;
check_lost('a failover', $standby);

# The same by a restore to a point in time.
%elsewhere = %at_fail_over;
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($node, 'backup', has_restoring => 1);
$restored->append_conf('postgresql.conf', "recovery_target_name = 'before'\nrecovery_target_action = 'promote'\narchive_mode = off");
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
check_lost('a restore to a point in time', $restored);

# A copy by a template, with its own sequence and watermark.
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres');
my $in_copy = RawSession->connect($standby, database => 'copy');
my $in_original = RawSession->start($standby);
$in_copy->query_safe($_) foreach 'BEGIN', $insert;
my $last = $in_original->query_safe("$insert RETURNING id");
is($in_original->query_safe("SELECT fast_feed.watermark('outbox')"), $last + 1, 'a copy of the database holds back nothing here');
is($in_copy->query_safe("SELECT fast_feed.watermark('outbox')"), $last, '... but its own');
$in_copy->query_safe('COMMIT');
is($in_copy->query_safe($read_on), $last, 'a position that was copied goes on there');

# A logical replica takes over: enable() asks for a sequence that is not behind.  A stored watermark
# can be above every row, when the last numbers were rolled back.
my $replica = start_node('replica', "wal_level = logical\nwal_retrieve_retry_interval = 100ms");
$replica->safe_psql('postgres', 'CREATE TABLE outbox (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, way text);'
	  . ' CREATE TABLE consumers (position bigint); CREATE TABLE stored (upto bigint)');
$standby->safe_psql('postgres', 'ALTER TABLE consumers REPLICA IDENTITY FULL; CREATE TABLE stored (upto bigint);'
	  . ' CREATE PUBLICATION everything FOR TABLE outbox, consumers, stored');
my $connection = $standby->connstr('postgres') =~ s/'/''/gr;
$replica->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION everything");
$replica->wait_for_subscription_sync($standby, 's');
$standby->safe_psql('postgres', $read_on);
my $position = $standby->safe_psql('postgres', 'SELECT position FROM consumers');
$standby->safe_psql('postgres', $insert) foreach 1 .. 3;
$standby->safe_psql('postgres', "BEGIN; $many; ROLLBACK");
$standby->safe_psql('postgres', "INSERT INTO stored SELECT fast_feed.watermark('outbox')");
$standby->wait_for_catchup('s');
$standby->stop('immediate');
$replica->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s');
my $session = RawSession->start($replica);
refused($session, "SELECT fast_feed.enable('outbox', 'id')", '55000', 'numbers that its sequence has not given.*setval',
	'a logical replica: a sequence that is behind');
like(slurp_file('doc/servers.md'), qr/above\s+all\s+rows,\s+positions\s+and\s+stored\s+watermarks\s+by\s+`skip\(\)`/, 'the page says above what');
$session->query_safe("SELECT fast_feed.skip('outbox_id_seq',"
	  . ' greatest((SELECT max(id) FROM outbox), (SELECT max(position) FROM consumers), (SELECT max(upto) FROM stored)))');
$session->query_safe("SELECT fast_feed.enable('outbox', 'id')");
is($session->query_safe("$insert RETURNING id > (SELECT max(upto) FROM stored)"), 't', '... no number below a stored watermark comes');
is($session->query_safe("SELECT count(*) FROM outbox WHERE id > $position AND ${\ below('outbox')}"), 4,
	'... goes on with the position that it has got');

$_->stop foreach $restored, $replica;
foreach my $server ($node, $standby, $restored, $replica)
{
	unlike(slurp_file($server->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
}
done_testing();

# The reset of the feed is alone: it is refused while another session has joined its order, in
# whatever way and database, and in a transaction with feed ids; a call that is refused does
# not join, nor do keys.  A session that joins at that very moment is gaps.pl's; what a reset
# does is as_predicted.pl's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('reset');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE second');
$node->safe_psql($_, 'CREATE EXTENSION fast_uuid') foreach 'postgres', 'second';

sub session
{
	my ($database, @statements) = @_;
	my $session = RawSession->connect($node, database => $database);
	$session->query_safe($_) foreach @statements;
	return $session;
}

my $reset = 'SELECT uuidv7_feed_reset()';
my $state = "SELECT upper_bound FROM fast_uuid_stats() WHERE name = 'feed'";
my $dba = session('postgres', 'SELECT uuidv7_feed_id()');

# All at once, because the reset gives those who are about to leave some seconds.
my @joined = (
	session('postgres', 'SELECT uuidv7_feed_id()'),
	session('second', 'SELECT uuidv7_feed_position()'),
	session('postgres', 'SELECT uuidv7_feed_observe(uuidv7_fast_min(now()))'),
	session('postgres', 'SELECT uuidv7_feed_position_observe(0)'),
	session('second', 'SELECT uuidv7_feed_watermark()'),
	session('postgres', 'SELECT uuidv7_feed_position_watermark()'),
	session('postgres', 'SELECT uuidv7_feed_wait(0)'),
	session('postgres', 'BEGIN', 'SELECT uuidv7_feed_id()', 'ROLLBACK', 'DISCARD ALL'));
my $apart = session('postgres', 'SELECT uuidv7_fast_array(3)',
	'SELECT count(*) FROM fast_uuid_stats()');
foreach my $call ('wait(NULL)', 'wait(0, NULL)', "id('typo')", 'observe(gen_random_uuid())',
	'position_observe(-1)')
{
	$apart->query("SELECT uuidv7_feed_$call");
	isnt($apart->{error}, '', "a call that is refused: $call");
}
my $before = $dba->query_safe($state);
is($dba->outcome($reset), '55006', 'refused beside sessions that have joined');
my ($count, $pids) = $dba->{error} =~
  /^55006 order of feed ids is being .*\|(\d+) other sessions have.* IDs (.*)\.\|End these/;
is($count, @joined, '... how many');
is(join(' ', sort split /, /, $pids), join(' ', sort map { $_->{pid} } @joined), '... and which');
is($dba->query_safe($state), $before, '... and nothing has changed');
my $one = shift @joined;
$_->quit foreach @joined;
is($dba->outcome($reset), '55006', 'refused beside one');
like($dba->{error}, qr/\|1 other session has .*: process ID $one->{pid}\.\|/, '... which');
$one->quit;
is($dba->outcome($reset), 'value ', 'beside those that have not joined it works');

$dba->query_safe('BEGIN; SELECT uuidv7_feed_position()');
is($dba->outcome($reset), '25001', 'refused in a transaction with feed ids');
$dba->query_safe('ROLLBACK; BEGIN; SELECT uuidv7_fast()');
is($dba->outcome($reset), 'value ', 'in one with keys it works');
$_->quit foreach $dba, $apart;
$node->stop;
done_testing();

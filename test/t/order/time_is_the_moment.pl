# The time in a UUID is that of its own moment: a row of a set does not keep that of the
# row before.  A lead is noted where it is seen.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('moment');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
my $start = 1_800_000_000_000_000_000;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION in_instance_order() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.ordering = 'instance' AS
	'BEGIN RETURN uuidv7_fast(); END';
});
my $dba = RawSession->start($node, "SET fast_uuid.ordering = 'instance'");

# The clock is so many seconds from its start.
sub clock_at
{
	my ($seconds) = @_;
	$clock->put($start + $seconds * 1_000_000_000);
	return;
}

# The same of the UUID that a statement gives, the last one.
sub time_of
{
	my ($session, $sql) = @_;
	my $id = (split /\n/, $session->query_safe($sql))[-1];
	return int((KnownClock::ns_of($id) - $start) / 1_000_000_000);
}

sub largest_lead
{
	my ($session, $name) = @_;
	return $session->query_safe("SELECT round(extract(epoch FROM largest_clock_lead)) FROM fast_uuid_stats() WHERE name = '$name'");
}

# A new beginning for all, and a session that has taken part in the order of the instance.
# Whoever resets is alone: see reset.pl.
sub begin
{
	clock_at(0);
	$dba->query_safe('SELECT fast_uuid_reset_ordering()');
	return RawSession->start($node, 'SELECT in_instance_order()', @_);
}

# A resting cursor.
my $session = begin('BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)', 'FETCH c');
clock_at(86_400);
is(time_of($session, 'FETCH c'), 86_400, 'a cursor over a set follows a clock that went forward a day');
clock_at(79_200);
is(time_of($session, 'FETCH c'), 86_400, 'and goes on when that stepped back two hours');
$session->query_safe("SAVEPOINT a; SET fast_uuid.max_clock_lead = '1h'");
is($session->outcome('FETCH c'), '55000', 'but not beyond the limit, which each row is held against');
$session->quit;

# The largest lead, whatever the order is set to meanwhile.
$session = begin('SELECT uuidv7_fast()');
clock_at(-3600);
foreach my $ordering ('session', 'instance', 'session', 'instance')
{
	$session->query_safe("SET fast_uuid.ordering = '$ordering'; SELECT uuidv7_fast(), uuidv7_fast_set(3); SELECT in_instance_order()");
}
is(largest_lead($session, $_), '3600', "$_: the largest lead, although the order changes") foreach 'session', 'instance';
is(largest_lead($dba, 'instance'), '3600', 'instance: for another session too');
$session->quit;

# ... also where the call fails because of it.
foreach my $ordering ('session', 'instance')
{
	$session = begin("SET fast_uuid.ordering = '$ordering'", "SET fast_uuid.max_clock_lead = '1min'", 'SELECT uuidv7_fast()');
	clock_at(-7200);
	is($session->outcome('SELECT uuidv7_fast()'), '55000', "$ordering: beyond the limit");
	clock_at(0);
	is(largest_lead($session, $ordering), '7200', "$ordering: the lead is noted, although the call fails");
	$session->quit;
}

# A session that fails because of its own lead says nothing of the instance.
$session = begin();
clock_at(3600);
$session->query_safe("SET fast_uuid.max_clock_lead = '1min'; SELECT uuidv7_fast()");
clock_at(0);
is($session->outcome('SELECT in_instance_order()'), '55000', 'a session with a lead of its own comes to the instance');
is(largest_lead($dba, 'instance'), '0', 'instance: it has none from there');
is(largest_lead($session, 'session'), '3600', 'session: but the session has');
$session->quit;

# A call that fails for that reason has published the clock's time.  What the transaction
# generates after all, with the clock back, is earlier, and holds the watermark back.
$session = begin();
clock_at(3600);
$session->query_safe('SELECT uuidv7_fast()');
clock_at(1800);
$session->query_safe("BEGIN; SAVEPOINT a; SET fast_uuid.max_clock_lead = '1min'");
is($session->outcome('SELECT in_instance_order()'), '55000', 'a call fails because of the lead of its session');
clock_at(0);
$session->query_safe('ROLLBACK TO a; SELECT fast_uuid_reset_ordering()');
my $id = $session->query_safe('SELECT in_instance_order()');
clock_at(10);
cmp_ok($dba->query_safe('SELECT uuidv7_fast_watermark()'), 'le', $id, '... and the next one, with the clock back, holds the watermark back');
$session->quit;

# A lead seen under the order of the instance is one of the session as well.
$session = begin("SET fast_uuid.ordering = 'instance'", 'SELECT uuidv7_fast()');
clock_at(-3600);
$session->query_safe('SELECT uuidv7_fast()');
clock_at(0);
is(largest_lead($session, 'session'), '3600', 'session: a lead seen under the order of the instance');
$session->quit;

# Without another reset a session's own order is kept when it comes to that of the instance.
my $pooled = begin();
clock_at(600);
$pooled->query_safe('SELECT uuidv7_fast()');
clock_at(0);
is(time_of($pooled, 'SELECT in_instance_order()'), 600, 'without another reset the order of a session is kept');
is(time_of($pooled, 'SELECT uuidv7_fast()'), 600, 'in both orders');
$pooled->quit;

# A cursor that rests while its latest nanosecond is generated again after a reset.
$session = begin('BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)', 'FETCH 2 FROM c');
my ($latest) = $session->query_safe('SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast_set(1000) LIMIT 5') =~ /(\S+)\z/;
cmp_ok($session->query_safe('FETCH c'), 'gt', $latest, 'a resting cursor goes on after the latest value, whatever it is');
$session->quit;

$dba->quit;
$node->stop;
done_testing();

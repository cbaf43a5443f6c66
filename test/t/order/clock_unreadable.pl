# A clock that cannot be read is an error, whatever is asked, and nothing is generated.

use strict;
use warnings;

use Errno qw(EINVAL);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('unreadable');
$node->init;
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

sub session
{
	return RawSession->connect($node, user => $user, database => 'postgres');
}

my @calls = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')", '(uuidv7_fast_array(1))[1]', 'uuidv7_fast_set(1)');
my $now   = 1_800_000_000_999_999_999;
$clock->put($now);

my $session = session();
my $latest = $session->query('SELECT uuidv7_fast()');
my $refills = "SELECT sum(refills) FROM fast_uuid_stats() WHERE kind = 'source'";
my $drawn   = $session->query($refills);
$clock->set(fails => EINVAL);
foreach my $call (@calls, 'uuidv7_fast_array(1000)', 'fast_uuid_stats()', "fast_uuid_observe('$latest')")
{
	is($session->outcome("SELECT $call"), '58000', "a clock that cannot be read: $call is an error");
	like($session->{error}, qr/could not read the system clock: Invalid argument/, "a clock that cannot be read: $call says so");
}
like($session->outcome('SELECT uuidv7_fast_at(now())'), qr/^value [0-9a-f]/, 'a given time needs no clock');
$clock->set(fails => 0);
$clock->put($now + 1000);
$clock->move(1000);
my @after = ($session->query('SELECT uuidv7_fast()'), split /\n/, $session->query('SELECT uuidv7_fast_set(3)'));
is(scalar(grep { $_ gt $latest } @after), 4, 'once it can be read the session goes on, in its order');
is(KnownClock::ns_of($after[0]) + 1000, KnownClock::ns_of($after[1]), 'by the clock');
$session->quit;

$node->stop;
done_testing();

# A server of which the next incarnation begins with an earlier clock, and the greatest
# nanosecond of a feed id or position of each database, which all that follow must exceed.

package DurableNode;

use strict;
use warnings;

use Exporter qw(import);
use FakeClock;
use FeedWriters;
use KnownClock;
use RawSession;
use Test::More;

our @EXPORT = qw(*node *database *behind *greatest $generate
  new_durable_node run refused ids nanoseconds stats session exceed next_incarnation observe);

# Where the following work; and a feed id and a position.
our ($node, $database) = (undef, 'postgres');
our $generate = 'SELECT uuidv7_feed_id(); SELECT uuidv7_feed_position()';

# By how many seconds the clock is behind; and the greatest that any session got.
our $behind = 0;
our %greatest;

# The server "durable", started, with the extension in the database postgres.  What is not
# flushed for the upper bound's sake is not flushed by chance.
sub new_durable_node
{
	$node = new_feed_node('durable', q{
wal_writer_delay = '10 s'
autovacuum = off
max_prepared_transactions = 5
}, allows_streaming => 1);
	start_with_fake_clock($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	return;
}

# The output of some SQL, and the errors that it got.
sub run
{
	my ($sql) = @_;
	my (undef, $out, $err) =
	  $node->psql($database, "\\set VERBOSITY verbose\n$sql", on_error_stop => 0);
	return ($out, $err);
}

sub refused
{
	my ($sql, $error, $name) = @_;
	my ($out, $err) = run($sql);
	like($err, $error, "$name: refused");
	is($out, '', "$name: no value");
	return;
}

# The nanoseconds of feed ids and positions among these lines, in ascending order.
sub nanoseconds
{
	my @ns;
	foreach my $value (map { split /\n/ } @_)
	{
		push @ns, KnownClock::ns_of($value) if $value =~ /^[0-9a-f]{8}-/;
		push @ns, $value if $value =~ /^\d{18,}$/;
	}
	@ns = sort { $a <=> $b } @ns;
	return @ns;
}

sub ids
{
	my ($out) = run(@_);
	return nanoseconds($out);
}

sub stats
{
	my ($columns) = @_;
	return $node->safe_psql($database,
		"SELECT $columns FROM fast_uuid_stats() WHERE name = 'feed'");
}

sub session
{
	return RawSession->connect($node, database => $database);
}

# Do these exceed all before?  They count from then on.
sub exceed
{
	my ($name, @values) = @_;
	my @ns = nanoseconds(@values);
	cmp_ok($ns[0] // 0, '>', $greatest{$database} // 0, "$name: beyond all before");
	$greatest{$database} = $ns[-1] if @ns;
	return;
}

# The next incarnation begins with a clock that is further behind by so many seconds.
sub next_incarnation
{
	my ($way, $seconds) = @_;
	$behind += $seconds;
	end_incarnation($node, $way);
	set_clock_offset($node, sprintf('%+d', -$behind));
	begin_incarnation($node);
	return;
}

# SQL that observes a time.
sub observe
{
	my ($time) = @_;
	return "SET fast_uuid.max_clock_lead = '20 d';"
	  . " SELECT uuidv7_feed_observe(uuidv7_fast_at($time))"
	  . " FROM fast_uuid_stats() WHERE name = 'feed'";
}

1;

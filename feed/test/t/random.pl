# Random statements in sessions of two databases, one after the other: transactions with and
# without numbers, at two isolation levels, with savepoints and cursors, prepared and not, while
# transaction numbers wrap around.
#
# Below each watermark that a statement was given are only rows that the statement saw, as
# the end shows; above one that a transaction asks for first is no row that it could have been
# given, because only transactions in flight hold it back.  A transaction with a snapshot of its
# own may be told that no watermark is old enough.
#
#   TEST_SEED=n    the statements of an earlier run again (it printed its seed)

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RandomSeed;
use RawSession;

my ($rounds, $steps, $max_prepared) = (120, 40, 40);
my @databases = ('here', 'there');
my $node = new_node('random', qq{
max_connections = 20
max_prepared_transactions = $max_prepared
max_worker_processes = 0
max_wal_senders = 0
autovacuum = off
log_statement = none
});
$node->append_conf('postgresql.conf', $node->pg_version >= 18
	? 'autovacuum_worker_slots = 1' : 'autovacuum_max_workers = 1');
$node->start;
foreach my $database (@databases)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, q{
CREATE EXTENSION fast_feed;
CREATE TABLE item (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
SELECT fast_feed.enable('item', 'number');
CREATE TABLE noise ()});
}

# Some transaction numbers before they wrap around.
$node->safe_psql($_, 'VACUUM FREEZE') foreach 'postgres', 'template1', @databases;
$node->stop;
my $next = 2**32 - 40;
command_ok([ 'pg_resetwal', '-x', $next, '-u', $next - 1_000_000, $node->data_dir ],
	'transaction numbers are about to wrap around');
my $segment = sprintf '%s/pg_xact/%04X', $node->data_dir, $next / (32 * 32768);
append_to_file($segment, "\0" x 262144);
$node->start;

my $insert = 'INSERT INTO item DEFAULT VALUES RETURNING number';
my $noise = 'INSERT INTO noise DEFAULT VALUES';
my $with_snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1';

# The first number of each transaction in flight, by database, and by its process or, once
# it is prepared, by its name; and the database of each that is prepared.
my (%first, %prepared, $names);

# Watermarks: {database}, {bound}, and how many rows {below} it were seen.
my (@given, @wrong);
my $told = 0;

sub session
{
	my ($database) = @_;
	my $session = RawSession->connect($node, database => $database);
	$session->{database} = $database;
	return $session;
}

sub generate
{
	my ($session, $sql) = @_;
	my $number = $session->query_safe($sql);
	$first{ $session->{database} }{ $session->{pid} } //= $number if $session->{open};
	return;
}

# At READ COMMITTED; or with a snapshot, to which what it is given belongs.
sub begin
{
	my ($session, $sql) = @_;
	$session->query_safe($sql // 'BEGIN');
	$session->{open} = 1;
	$session->{asked} = $session->{repeatable} = defined $sql;
	return;
}

sub end
{
	my ($session, $sql) = @_;
	$session->query_safe($sql);
	delete $first{ $session->{database} }{ $session->{pid} };
	delete @$session{qw(open asked repeatable cursor)};
	return;
}

# The watermark, how many rows are below it, and how many from there on, up to the first
# that holds it back.
sub question
{
	my ($session) = @_;
	my ($first) = sort { $a <=> $b } values %{ $first{ $session->{database} } }, 9223372036854775807;
	return qq{
SELECT concat_ws(' ', bound,
		(SELECT count(*) FROM item WHERE number < bound),
		(SELECT count(*) FROM item WHERE number >= bound AND number < $first))
  FROM fast_feed.watermark('item') AS bound};
}

sub ask
{
	my ($session, $sql) = @_;
	my $row = $session->query($sql // question($session));
	if ($session->{error} =~ /^55000 no watermark of sequence/ && $session->{repeatable})
	{
		$told++;
		end($session, 'ROLLBACK');
		return;
	}
	die "$session->{error}\n" if $session->{error} ne '';
	my ($bound, $below, $above) = split / /, $row;
	push @given, { database => $session->{database}, bound => $bound, below => $below };
	push @wrong, "$above rows were not given" if $above && !$session->{asked};
	$session->{asked} = $session->{open};
	return;
}

# A cursor has the snapshot of when it was declared, whatever the transaction has asked since.
sub use_cursor
{
	my ($session) = @_;
	if (!$session->{cursor})
	{
		$session->query_safe('DECLARE asks CURSOR FOR' . question($session));
		$session->{cursor} = 1;
		return;
	}
	ask($session) if rand() < 0.5;
	$session->{asked} = 1;
	ask($session, 'FETCH asks') if $session->{open};
	return if !$session->{open};
	$session->query_safe('CLOSE asks');
	delete $session->{cursor};
	return;
}

sub prepare
{
	my ($session) = @_;
	my $first = $first{ $session->{database} };
	my $name = 'prepared ' . ++$names;
	return if keys %prepared == $max_prepared;
	$first->{$name} = $first->{ $session->{pid} } if $first->{ $session->{pid} };
	$prepared{$name} = $session->{database};
	return end($session, "PREPARE TRANSACTION '$name'");
}

# Another session of the database ends a prepared one.
sub end_prepared
{
	my ($name, @sessions) = @_;
	my ($session) = grep { $_->{database} eq $prepared{$name} && !$_->{open} } @sessions;
	return unless $session;
	$session->query_safe((rand() < 0.8 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$name'");
	delete $first{ delete $prepared{$name} }{$name};
	return;
}

my @sessions = map { session($databases[ $_ % 2 ]) } 1 .. 10;
my %watch = map { $_ => session($_) } @databases;

# What a session does in a transaction block, and outside of one.
my %within = (
	insert => sub { generate($_[0], $insert) },
	next => sub { generate($_[0], q{SELECT fast_feed.next('item_number_seq')}) },
	noise => sub { $_[0]->query_safe($noise) },
	ask => sub { ask($_[0]) },
	cursor => \&use_cursor,
	savepoint => sub {
		generate($_[0], "SAVEPOINT a; $insert");
		$_[0]->query_safe(rand() < 0.5 ? 'RELEASE a' : 'ROLLBACK TO a');
	},
	prepare => \&prepare,
	end => sub { end($_[0], rand() < 0.8 ? 'COMMIT' : 'ROLLBACK') });
my %alone = (
	insert => $within{insert},
	noise => $within{noise},
	ask => sub { ask($_[0]) },
	begin => \&begin,
	begin_with_snapshot => sub { begin($_[0], $with_snapshot) },
	begin_with_cursor => sub {
		begin($_[0]);
		use_cursor($_[0]);
	},
	prepared => sub {
		my @names = sort keys %prepared;
		end_prepared($names[ rand @names ], @sessions) if @names;
	});

# A transaction that is older than the wrap has ended for the watermark, and not for the
# snapshot of a reader; an earlier snapshot knows of neither.
my ($writer, $reader, $early) = @sessions[ 0, 2, 4 ];
my $watch = $watch{ $writer->{database} };
begin($early, $with_snapshot);
begin($writer);
generate($writer, $insert);
$watch->query_safe($noise) foreach 1 .. 60;
begin($reader, $with_snapshot);
ask($watch);
end($writer, 'COMMIT');
ask($_) foreach $watch, $reader, $early;
cmp_ok($watch->query_safe('SELECT pg_current_xact_id()::xid::text'), '<', $next,
	'transaction numbers have wrapped around');

# As many are running as there can be, most of them prepared; and snapshots list them, as a
# later one has ended.
foreach (1 .. $max_prepared)
{
	begin($writer);
	generate($writer, $insert);
	prepare($writer);
}
foreach my $session (@sessions)
{
	begin($session);
	$session->query_safe($noise);
}
$watch->query_safe($noise);
ask($_) foreach values %watch, @sessions;
end($_, 'COMMIT') foreach @sessions;
end_prepared($_, @sessions) foreach sort keys %prepared;

seed_random();
foreach my $round (1 .. $rounds)
{
	# Some of the sessions, often of one database, and some of what they can do.
	my @chosen = grep { $_->{database} eq 'here' || $round % 2 } @sessions;
	my ($sessions, $watched) = (2 + int((@chosen - 1) * rand()**2), rand);
	my @within = ('ask', 'end', grep { rand() < 0.5 } sort keys %within);
	my @alone = ('ask', 'begin', grep { rand() < 0.5 } sort keys %alone);
	foreach (1 .. $steps)
	{
		my $session = $chosen[ rand $sessions ];
		my ($inside, $outside) = ($within[ rand @within ], $alone[ rand @alone ]);
		$session->{open} ? $within{$inside}->($session) : $alone{$outside}->($session);
		ask($watch{ $databases[ rand 2 ] }) if rand() < $watched;
	}
	end($_, 'COMMIT') foreach grep { $_->{open} } @sessions;
	end_prepared($_, @sessions) foreach sort keys %prepared;
	ask($_) foreach @sessions;
}

my ($numbers, %rows) = ('SELECT number FROM item');
$rows{$_} = [ split /\n/, $watch{$_}->query_safe($numbers) ] foreach @databases;
foreach my $given (@given)
{
	my $below = grep { $_ < $given->{bound} } @{ $rows{ $given->{database} } };
	push @wrong, "$given->{below} of $below rows were seen below $given->{bound}"
	  if $given->{below} != $below;
}
splice @wrong, 10 if @wrong > 10;
is(join("\n", @wrong), '', "$rounds times $steps statements, @{[scalar @given]} watermarks");
cmp_ok($told, '<', @given / 10, "$told times a transaction was told that none is old enough");
$node->stop;
done_testing();

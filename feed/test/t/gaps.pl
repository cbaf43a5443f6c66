# Between any two steps of a session that others act upon stands a test point (src/feed.h).  A
# session X is held at each, on each way to it, while a session Y does each thing that sessions
# do, and readers read; X is cancelled and terminated there; and once on each way to each point
# the server crashes.  After each combination the same must hold:
#
# I1  Whoever reads on from his position misses no row that is committed, and has none twice.
# I2  All rows below a watermark that are ever committed were visible to its statement.
# I3  Watermarks do not go back, unless the sequence is restarted.
# I4  A session that waits for ends is woken for the rows that it has not read.
# I5  Nothing hangs, or fails that should not; nobody holds back, no lock is left.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;
use TestPoints;
use Watchdog;

my $node = new_test_build('gaps', 'max_prepared_transactions = 20', 'restart_after_crash = on',
	# Nothing is flushed by somebody else.
	'synchronous_commit = off', 'wal_writer_delay = 10s');
$node->start;
$node->safe_psql('postgres', table('t') . join '', map { table("other_$_") } 1 .. 7);
$node->safe_psql('postgres', q{CREATE TABLE stamped (way text, number bigint);
SELECT fast_feed.enable('stamped', 'number', true, 't_id_seq')});

my $row = "INSERT INTO t (way) VALUES ('x')";
my $begun = "BEGIN; $row";
my $many = join '; ', 'BEGIN', map { "INSERT INTO other_$_ (way) VALUES ('x')" } 1 .. 7;
my $prepare = "PREPARE TRANSACTION '{pid}'";
my $finish = "COMMIT PREPARED '{pid}'";
my $snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1';

# Not evaluated by the planner as well, before the statement has its snapshot
my $read = "SELECT concat(w, chr(32), (SELECT count(*) FROM t WHERE id < w))"
  . " FROM (SELECT fast_feed.watermark('t') AS w OFFSET 0) AS r";
my $ended = "SELECT fast_feed.wait(-1, '0')";
my $wait = "SELECT fast_feed.wait({ended}, '1 day')";

# How X comes to the points: what it does before, and the statement in which it is held.  Where
# that is the first to look at locks since, nobody reads before.
my @ends = qw(clearing cleared waking woken);
my @reads = qw(sequence_opened sequence_read states_read locks_known computed exchanging exchanged);
my @ways = (
	{ way => 'a row', sql => $row, points => [ qw(joining joined before_publishing publishing published guarding), @ends ] },
	{ way => 'next()', sql => "SELECT fast_feed.next('t_id_seq')", points => [qw(published drawn clearing)] },
	{ way => 'stamp()', sql => "INSERT INTO stamped VALUES ('x')", points => [qw(published drawn)] },
	{ way => 'an eighth sequence', before => [$many], sql => $row, points => [qw(locking locked lock_counted made_room replacing publishing published guarding)] },
	{ way => 'commit', before => [$begun], sql => 'COMMIT', points => \@ends },
	{ way => 'rollback', before => [$begun], sql => 'ROLLBACK', points => [qw(clearing cleared)] },
	{ way => 'prepare', before => [$begun], sql => $prepare, points => [ qw(preparing locking locked lock_counted), @ends ] },
	{ way => 'exit', before => [$begun], sql => 'exit', points => [ qw(clearing leaving left) ] },
	{ way => 'read', sql => $read, points => [ qw(joining joined), @reads ] },
	{ way => 'read by an older snapshot', before => [ $read, $snapshot ], sql => $read, points => \@reads },
	{ way => 'read beside a prepared one', is_first => 1, before => [ $begun, $prepare ], sql => $read, points => [qw(locks_known locks_read locks_kept)] },
	{ way => 'read again beside it', before => [ $begun, $prepare, $read ], sql => $read, points => ['locks_known'] },
	{ way => 'read after it', is_first => 1, before => [ $begun, $prepare, $read, $finish ], sql => $read, points => [qw(locks_known locks_read)] },
	{ way => 'wait', before => [ $ended, $read ], sql => $wait, points => [qw(wait_due wait_listed)] });

# What Y does: before X is held, and while it is.
my @actions = (
	{ does => 'a row', sql => $row },
	{ does => 'a row in flight', sql => $begun },
	{ does => 'commit', before => [$begun], sql => 'COMMIT' },
	{ does => 'rollback', before => [$begun], sql => 'ROLLBACK' },
	{ does => 'exit', before => [$begun], sql => 'exit' },
	{ does => 'prepare', before => [$begun], sql => $prepare },
	{ does => 'commit prepared', before => [ $begun, $prepare ], sql => $finish },
	{ does => 'rollback prepared', before => [ $begun, $prepare ], sql => $finish =~ s/COMMIT/ROLLBACK/r },
	{ does => 'commit prepared, known', before => [ $begun, $prepare, $read ], sql => $finish },
	{ does => 'an eighth sequence', before => [$many], sql => $row },
	{ does => 'next()', sql => "SELECT fast_feed.next('t_id_seq')" },
	{ does => 'stamp()', sql => "INSERT INTO stamped VALUES ('x')" },
	{ does => 'read', sql => $read },
	{ does => 'read by an older snapshot', before => [ $read, $snapshot ], sql => $read },
	{ does => 'wait', before => [ $ended, $read ], sql => $wait },
	{ does => 'holders()', sql => 'SELECT count(*) FROM fast_feed.holders()' },
	{ does => 'setval ahead', sql => "SELECT setval('t_id_seq', last_value + 50) FROM t_id_seq" },
	{ does => 'skip()', sql => "SELECT fast_feed.skip('t_id_seq', last_value + 50) FROM t_id_seq" },
	{ does => 'ALTER SEQUENCE ... RESTART', restarts => 1, sql => q{DO $$ BEGIN EXECUTE
		'ALTER SEQUENCE t_id_seq RESTART WITH ' || (SELECT last_value + 100 FROM t_id_seq); END $$} },
	{ does => 'TRUNCATE ... RESTART IDENTITY', truncates => 1, sql => 'TRUNCATE t RESTART IDENTITY' },
	{ does => 'enable()', sql => "SELECT fast_feed.enable('t', 'id')" },
	{ does => 'ALTER TABLE', sql => 'ALTER TABLE t SET (fillfactor = 90)' },
	{ does => 'cancel X', sql => 'SELECT pg_cancel_backend({x})', stops => 1 },
	{ does => 'terminate X', sql => 'SELECT pg_terminate_backend({x})', stops => 1 });

# What sessions may be told, by what has happened to them.
my $no_mark = qr/^55000 no watermark of sequence/;
my $stopped = qr/^(?:57014|57P01|closed)/;

# The reader, and who waits
my ($r, $w);

my ($name, @wrong);
my $combinations = 0;
my ($position, %seen, @read, $greatest);

sub wrong
{
	my ($what) = @_;
	push @wrong, "$name: $what";
	return;
}

sub session
{
	my ($name) = @_;
	my $session = RawSession->start($node);
	@$session{qw(name sql ended)} = ($name, '', 0);
	return $session;
}

# The reader, who keeps his position elsewhere.
sub begin_anew
{
	($position, $greatest, %seen) = (0, 0);
	@read = ();
	return;
}

sub read_on
{
	my @rows = split /\n/, $r->query_safe("SELECT id FROM t WHERE id > $position AND ${\ below('t')} ORDER BY id");
	foreach my $id (@rows)
	{
		wrong("$id is read twice") if $seen{$id}++;
	}
	$position = $rows[-1] // $position;
	my $bound = $r->query_safe("SELECT fast_feed.watermark('t')");
	wrong("the watermark goes back from $greatest to $bound") if $bound < $greatest;
	$greatest = $bound;
	return;
}

sub begin
{
	my ($session, $sql, $x) = @_;
	$sql =~ s/\{(pid|ended)\}/$session->{$1}/;
	$sql =~ s/\{x\}/$x->{pid}/ if $x;
	$session->{sql} = $sql;
	return $sql eq 'exit' ? $session->leave : $session->send($sql);
}

# What came of it; what may be an error is "allowed".
sub finish
{
	my ($session, $allowed) = @_;
	my $sql = $session->{sql};
	return if $sql eq 'exit';
	my $rows = within($node, "$name: $session->{name}", sub { $session->receive });
	my $error = $session->{error};
	wrong("$session->{name}: $error") if $error ne '' && !($allowed && $error =~ $allowed);
	return if $error ne '';
	$session->{ended} = $rows if $sql =~ /wait\(/;
	if ($sql eq $read)
	{
		my ($bound, $rows) = split / /, $rows;
		push @read, [ $bound, $rows, $session->{name} ];
	}
	return;
}

sub run
{
	my ($session, @statements) = @_;
	foreach my $sql (@statements)
	{
		begin($session, $sql);
		finish($session);
	}
	return;
}

# Has it an answer, or does it wait for a lock?
sub settle
{
	my ($session) = @_;
	return 1 if $session->{sql} eq 'exit';
	my $waits = "SELECT wait_event_type IN ('Lock', 'LWLock', 'Buffer', 'BufferPin') OR wait_event ~ '^(FastFeedWait|Extension)'"
	  . " FROM pg_stat_activity WHERE pid = $session->{pid}";
	wait_until("$name: Y has an answer, or waits",
		sub { $session->has_answer || $r->query_safe($waits) eq 't' });
	return $session->has_answer;
}

# Commit, or roll back where that is all that is left.
sub end
{
	my ($session) = @_;
	return if $session->{closed};
	if ($session->{sql} eq 'exit')
	{
		return within($node, "$name: exit", sub { 1 while ($session->message)[0] ne '' });
	}
	$session->query('SELECT 1');
	return if $session->{closed};
	$session->query_safe($session->{error} eq '' ? 'COMMIT' : 'ROLLBACK');
	$session->quit;
	return commit_prepared();
}

sub commit_prepared
{
	$r->query_safe("COMMIT PREPARED '$_'") foreach split /\n/, $r->query_safe('SELECT gid FROM pg_prepared_xacts');
	return;
}

# After all has ended.  Where no prepared transaction was, which wakes nobody, who waits is woken
# for the rows that have not been read when he began to.
sub check
{
	my ($waits, $has_prepared) = @_;
	my $is_new = $r->query_safe("SELECT count(*) FROM t WHERE id > $position AND ${\ below('t')}") && !$has_prepared;
	if ($waits && ($is_new || $waits->has_answer))
	{
		finish($waits);
		$waits->{sql} = '';
	}
	read_on();
	my %all = map { $_ => 1 } split /\n/, $r->query_safe('SELECT id FROM t');
	wrong("missed: $_") foreach grep { !$seen{$_} } keys %all;
	my $last = $r->query_safe('SELECT last_value - (NOT is_called)::int FROM t_id_seq');
	my $bound = $r->query_safe("SELECT fast_feed.watermark('t')");
	wrong("the watermark is $bound, the last number $last") if $bound != $last + 1;
	foreach my $read (splice @read)
	{
		my ($upto, $rows, $name) = @$read;
		my $below = grep { $_ < $upto } keys %all;
		wrong("$name was given $upto, below which it saw $rows of $below rows") if $rows != $below;
	}
	my $left = $r->query_safe("SELECT (SELECT count(*) FROM fast_feed.holders())"
		  . " + (SELECT count(*) FROM pg_locks WHERE locktype = 'userlock')");
	wrong("$left still hold back") if $left;
	return $combinations++;
}

# It tells its client before it leaves, which is no answer.
sub Silent::has_answer { return 0 }

# Let X come to a point.
sub hold
{
	my ($x, $way, $point) = @_;
	return hold_at($way->{sql} eq 'exit' ? bless({ pid => $x->{pid} }, 'Silent') : $x, $point,
		sub { begin($x, $way->{sql}) });
}

# Let X come to a point, and do something meanwhile.
sub combine
{
	my ($way, $point, $action) = @_;
	$name = "$way->{way} at $point, $action->{does}";
	note($name);
	my ($x, $y) = map { session($_) } 'X', 'Y';
	run($x, @{ $way->{before} // [] });
	run($y, @{ $action->{before} // [] });
	read_on() unless $way->{is_first};
	run($w, $ended);
	begin($w, $wait);
	hold($x, $way, $point);
	begin($y, $action->{sql}, $x);
	my $can_read = settle($y) && !$action->{truncates};
	read_on() if $can_read;
	let_go($point);

	# Who waits, waits until the next row, if for nothing else.
	foreach my $session ($x, $y)
	{
		next if $session->{sql} =~ /^SELECT fast_feed.wait/;
		finish($session, $action->{stops} ? $stopped : $no_mark);

		# Before a prepared transaction is committed
		read_on() if $can_read;
		end($session);
	}
	begin_anew() if $action->{truncates};
	check($w, "@{ $way->{before} // [] } $way->{sql} @{ $action->{before} // [] } $action->{sql}" =~ /PREPARE/);
	$r->query_safe($row);
	finish($w) if $w->{sql};
	foreach my $session (grep { $_->{sql} =~ /^SELECT fast_feed.wait/ } $x, $y)
	{
		finish($session, $stopped);
		end($session);
	}
	read_on();
	return;
}

# Let the server crash while X is there.
sub crash
{
	my ($way, $point) = @_;
	$name = "$way->{way} at $point, a crash";
	my $x = session('X');
	my $open = session('open');
	run($x, @{ $way->{before} // [] });
	run($open, $begun);
	$r->query_safe($row);
	read_on() unless $way->{is_first};
	hold($x, $way, $point);

	# While it is published, nobody draws.
	$r->query_safe($row) unless $point eq 'publishing' || $point eq 'replacing';
	read_on();
	kill 'KILL', $x->{pid};
	wait_until("$name: it is gone", sub { !kill 0, $x->{pid} });
	wait_until("$name: all are gone", sub { $r->query('SELECT 1') ne '1' });
	wait_until_up($node);
	let_go($point);
	($r, $w) = (RawSession->start($node), session('W'));
	$r->query_safe($row);
	@read = ();
	$greatest = 0;
	commit_prepared();
	check(undef, 1);
	return;
}

($r, $w) = (RawSession->start($node), session('W'));
begin_anew();
foreach my $way (@ways)
{
	foreach my $point (@{ $way->{points} })
	{
		my $before = $combinations;
		combine($way, $point, $_) foreach grep { !($way->{is_first} && "@{ $_->{before} // [] }" =~ /watermark/) } @actions;
		crash($way, $point);
		is(join("\n", splice @wrong), '', "$way->{way} at $point: " . ($combinations - $before) . ' combinations');
	}
}

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();

# Between any two steps of a session that others act upon stands a test point
# (src/test_point.h).  A session X is held at each, on each way to it, while a session Y
# does each thing that sessions do and another one reads and inserts; and once at each
# point the server crashes.  After each combination the same must hold:
#
# I1  The feed id or position of a call is beyond all that had been returned or observed when
#     it began, unless the order was given up; the keys of a session ascend.
# I2  I1 holds across the crash, with an earlier clock, and beyond a bound of setval().
# I3  All rows below a watermark that are ever committed were visible to its statement.
# I4  A session that waits for ends, and reads, comes to read all that is committed when
#     nothing is in flight, without a timeout; an end is counted, nobody holds back.
# I5  Nothing hangs, or fails, or leaves a lock; no row's own id is refused by the guard.

use strict;
use warnings;

use IO::Select;
use List::Util qw(maxstr);
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use TestPoints;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = new_test_build('gaps', 'restart_after_crash = on',
	'max_prepared_transactions = 5', "fast_uuid.source = 'getrandom'",
	# The upper bound outlives the crash without a flush of somebody else.
	'synchronous_commit = off', 'wal_writer_delay = 10s');
my $clock = KnownClock->new($node);
my $ms = 1_000_000;
$clock->put(1_800_000_000_000 * $ms);

# Statements; {id +5} is a UUID of five milliseconds after the clock, {us +5} that time.
my $id = 'SELECT uuidv7_feed_id()';
my $row = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $rows = "BEGIN; $row";
my $prepare = "PREPARE TRANSACTION '{pid}'";
my $commit_prepared = "COMMIT PREPARED '{pid}'";
my $exit = 'exit';
my $all = 'SELECT count(*) FROM made';

# Not evaluated by the planner as well, before the statement has its snapshot
my $read = "SELECT concat(w, chr(32), ($all WHERE id < w))"
  . ' FROM (SELECT uuidv7_feed_watermark() AS w OFFSET 0) AS r';
my $ended = "SELECT uuidv7_feed_wait(-1, '0')";
my $wait = "SELECT uuidv7_feed_wait({ended}, '1 day')";
my $reset = 'SELECT uuidv7_feed_reset()';
my $any_lead = "SET fast_uuid.max_clock_lead = '1 d'";
my $setval = "SELECT setval('fast_uuid_upper_bound', {us +3000})";
sub observe { my ($ms) = @_; return "SELECT uuidv7_feed_observe('{id +$ms}')" }

# How X comes to the points: what it does before; what passes then, in milliseconds, or is set;
# the statement in which it is held, and where.
my @bound = map { "upper_bound_$_" } qw(read written moved);
my @unwritten = grep { !/written/ } @bound;
my @ways = (
	{ way => 'a row', sql => $row, points => [ qw(joining publishing published reserved),
			@bound, qw(clearing cleared waking) ] },
	{ way => 'rollback', before => [$rows], sql => 'ROLLBACK', points => ['clearing'] },
	{ way => 'prepare', before => [$rows], sql => $prepare, points => [qw(preparing clearing)] },
	{ way => 'exit', before => [$rows], sql => $exit, points => [qw(clearing leaving)] },
	{ way => 'reset', sql => $reset, points => [qw(resetting reset upper_bound_written)] },
	{ way => 'read', sql => $read,
		points => [qw(joining watermark in_flight_read watermark_computed)] },
	{ way => 'read beside a prepared one', before => [ $rows, $prepare ], sql => $read,
		points => ['locks_read'] },
	{ way => 'read after it', before => [ $rows, $prepare, $commit_prepared ], sql => $read,
		points => ['locks_read'] },
	{ way => 'wait', before => [ $ended, $read ], sql => $wait,
		points => [qw(wait_due wait_listed)] },
	{ way => 'woken', before => [$read], sql => "SELECT uuidv7_feed_wait(-1, '1 day')",
		points => [qw(wait_due wait_listed)] },
	{ way => 'an id, soon at the bound', before => [$id], passes => 600, sql => $id,
		points => \@bound },
	{ way => 'an id beyond the bound', before => [$id], passes => 1500, sql => $id,
		points => \@bound },
	{ way => 'an id after setval', sets => $setval, sql => $id,
		points => [ 'reserved', @unwritten ] },
	{ way => 'observe', sql => observe(500), points => \@bound },
	{ way => 'observe below setval', sets => $setval, sql => observe(500),
		points => \@unwritten },
	{ way => 'observe beyond setval', before => [$any_lead], sets => $setval,
		sql => observe(4000), points => \@bound });

# What Y does: before X is held, and while it is; "begun" already before that, where X ends a
# transaction.  Where it has joined the order, it is not beside a reset.
my $keys = 'SELECT a < b FROM'
  . ' (SELECT uuidv7_fast() AS a, uuidv7_feed_watermark(), uuidv7_fast() AS b) AS s';
my @actions = (
	{ does => 'an id', sql => $id },
	{ does => 'keys', sql => $keys },
	{ does => 'a position', sql => 'SELECT uuidv7_feed_position()' },
	{ does => 'a row', sql => $row },
	{ does => 'a row in flight', sql => $rows },
	{ does => 'commit', before => [$rows], sql => 'COMMIT', joined => 1 },
	{ does => 'rollback', before => [$rows], sql => 'ROLLBACK', joined => 1 },
	{ does => 'prepare', before => [$rows], sql => $prepare, joined => 1 },
	{ does => 'commit prepared', before => [ $rows, $prepare ], sql => $commit_prepared,
		joined => 1 },
	{ does => 'exit', before => [$rows], sql => $exit, joined => 1 },
	{ does => 'observe', sql => observe(100) },
	{ does => 'observe beyond', before => [$any_lead], sql => observe(3500) },
	{ does => 'reset', sql => $reset },
	{ does => 'read', sql => $read },
	{ does => 'wait', before => [ $ended, $read ], sql => $wait, joined => 1 },
	{ does => 'waiting', before => [ $ended, $read ], sql => $wait, joined => 1, begun => 1 },
	{ does => 'wait, no timeout', sql => $ended },
	{ does => 'GRANT', sql => 'GRANT SELECT ON fast_uuid_upper_bound TO pg_monitor' },
	{ does => 'ALTER', sql => 'ALTER SEQUENCE fast_uuid_upper_bound OWNED BY NONE' },
	{ does => 'setval ahead', sql => $setval },
	{ does => 'setval behind', sql => $setval =~ s/\+3000/-1000/r });

my $admin;
my $latest = '';     # the greatest id that was returned or observed
my $bound = '';      # of setval(): whoever looks from then on begins beyond it
my $orders = 0;      # how often they were given up
my @reads;           # each watermark, and how many rows below it the statement saw
my @wrong;

sub give_up_order
{
	($latest, $bound, @reads) = ('', '');
	$orders++;
	return;
}

sub session
{
	my ($name) = @_;
	my $session = RawSession->start($node);
	@$session{qw(name sql)} = ($name, '');
	return $session;
}

sub begin
{
	my ($session, $sql) = @_;
	my $now = $clock->now;
	$sql =~ s/\{(pid|ended)\}/$session->{$1}/;
	$sql =~ s/\{id (\S+)\}/KnownClock::uuid_of($now + $1 * $ms, 0)/e;
	$sql =~ s/\{us (\S+)\}/($now + $1 * $ms) \/ 1000/e;
	$session->{open} = $sql eq $rows;
	@$session{qw(sql orders latest)} = ($sql, $orders, $latest);
	$session->{bound} = $session->{looked} ? '' : $bound;
	return $sql eq $exit ? $session->leave : $session->send($sql);
}

# Wait until a session has an answer, or cannot go on.
sub settle
{
	my ($session) = @_;
	until (IO::Select->new($session->{socket})->can_read(0.003))
	{
		last if $admin->query_safe('SELECT count(*) FROM pg_stat_activity'
			  . " WHERE pid = $session->{pid} AND wait_event_type IN"
			  . " ('LWLock', 'Lock', 'Buffer', 'BufferPin', 'Extension')");
	}
	return $session->has_answer;
}

# What came of a statement, and whether it may.
sub finish
{
	my ($session) = @_;
	my $sql = $session->{sql};
	my $answer = $session->receive;
	my $error = $session->{error} || ($session->{closed} && $sql ne $exit ? 'closed' : '');
	my $said = "$session->{name}: $sql: $answer$error";
	my $expected = $session->{refused} ? qr/^57014/ : qr/^$/;
	$session->{sql} = '';
	push @wrong, "I5, no unexpected error: $said" if $error !~ $expected;
	return '' if $error ne '';
	give_up_order() if $sql eq $reset && !$session->{has_reset};
	my ($made, $next) = $answer =~ /^(\S{36})$/m;
	($made, $next) = map { KnownClock::uuid_of($answer, $_) } 0, (1 << 54) - 1
	  if $answer =~ /^\d{19}$/;
	my ($observed) = $sql =~ /observe\('(.*)'\)/;
	my $beyond = maxstr($session->{latest}, $session->{bound} eq $bound ? $bound : '');
	push @wrong, "I1, order: $said is not beyond $beyond"
	  if $made && $made le $beyond && $session->{orders} == $orders;
	push @wrong, "I1, order of the session: $said" if $answer eq 'f';
	$session->{looked} ||= $made;
	$latest = maxstr($latest, grep { defined } $made, $next, $observed);
	$bound = KnownClock::uuid_of($1 * 1000, 0) if $sql =~ /setval\(.*, (\d+)/;
	if ($answer =~ /^(\S{36}) (\d+)$/)
	{
		push @reads, "('$1'::uuid, $2)";
		$session->{seen} = $2;
	}
	$session->{ended} = $answer if $sql =~ /feed_wait/;
	return $answer;
}

sub run
{
	my ($session, @sql) = @_;
	my $answer;
	foreach my $sql (@sql)
	{
		begin($session, $sql);
		$answer = finish($session);
	}
	return $answer;
}

# What came of a statement; whoever waits has been woken, reads, and waits again.
sub go_on
{
	my ($session) = @_;
	my $follows = $session->{sql} =~ /1 day/;
	finish($session);
	run($session, $read) if $follows;
	begin($session, $wait) if $follows;
	return;
}

# Whoever waits comes to read all, when nothing is in flight.
sub check_waiting
{
	my $count = $admin->query_safe($all);
	foreach my $session (grep { $_->{sql} =~ /1 day/ } @_)
	{
		go_on($session) while $session->{seen} != $count;
	}
	return;
}

# The server ends X where it stands, and all others; the clock is behind when it is
# back, by so little that nobody waits for it.
sub crash
{
	my ($x, @others) = @_;
	kill 'KILL', $x->{pid};
	foreach my $session ($x, @others, $admin)
	{
		$session->receive until $session->{closed};
		$session->{sql} = $session->{open} = '';
	}
	$clock->step(-1900 * $ms);
	wait_until_up($node);
	$admin = session('admin');
	return;
}

# When all have done what they do; the last one knows nothing of setval() or a crash.
sub check_the_end
{
	my (@sessions) = @_;
	my $last = $sessions[-1];
	my @open = grep { $_->{open} } @sessions;
	my @prepared = split /\n/, $admin->query_safe('SELECT gid FROM pg_prepared_xacts');

	check_waiting(@sessions) unless @open || @prepared;
	run($last, $read);
	run($_, 'COMMIT') foreach @open;
	run($admin, "COMMIT PREPARED '$_'") foreach @prepared;
	my $count = run($last, $ended);
	run($last, $row);
	push @wrong, 'I4, an end is counted' if run($last, $ended) != $count + 1;
	check_waiting(@sessions);
	run($last, $read);
	push @wrong, 'I4, the watermark is beyond all rows'
	  if $last->{seen} != $admin->query_safe($all);
	push @wrong, 'I4, nobody holds it back'
	  if run($last, "SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'feed'") ne '';
	push @wrong, 'I5, no lock is left'
	  if $admin->query_safe('SELECT count(*) FROM pg_locks WHERE objsubid = 30069');
	push @wrong, map { "I3, a row below watermark $_ was not visible" } split /\n/,
	  $admin->query_safe('SELECT w FROM (VALUES ' . join(', ', splice @reads) . ') AS r (w, n)'
		  . " WHERE n <> ($all WHERE id < w)");
	$admin->query_safe("SELECT pg_terminate_backend($_->{pid})")
	  foreach grep { $_->{sql} ne '' } @sessions;
	$_->quit foreach @sessions;
	return;
}

sub combine
{
	my ($way, $point, $action, $crash) = @_;
	my ($x_sql, $y_sql, $begun) = ($way->{sql}, $action->{sql}, $action->{begun});
	my @sessions = map { session($_) } 'X', 'Y', 'another';
	my ($x, $y, $other) = @sessions;

	# So that what the earlier ones have set is behind.
	$clock->step(20_000 * $ms);
	$bound = '';
	run($y, @{ $action->{before} });
	$clock->step(2000 * $ms);
	run($x, @{ $way->{before} });
	$clock->step($way->{passes} * $ms) if $way->{passes};
	run($admin, $way->{sets}) if $way->{sets};

	begin($y, $y_sql) if $begun;
	hold_at($x, $point, sub { begin($x, $x_sql) });
	$x->{has_reset} = $x_sql eq $reset && $point ne 'resetting';
	give_up_order() if $x->{has_reset};
	if ($y_sql eq $reset && $point ne 'joining')
	{
		$y->query_safe("SET statement_timeout = '10ms'");
		$y->{refused} = 1;
	}
	begin($y, $y_sql) unless $begun;
	go_on($y) if settle($y);

	# Whoever waits is not woken by yet another end.
	foreach my $sql ($crash ? () : $y_sql eq $wait ? $read : ($read, $row))
	{
		begin($other, $sql) if $other->{sql} eq '';
		finish($other) if settle($other);
	}
	crash(@sessions) if $crash;
	let_go($point);
	finish($_) foreach grep { $_->{sql} ne '' && $_->{sql} !~ /1 day/ } @sessions;
	push @sessions, session('the last') if $bound ne '' || $crash;
	check_the_end(@sessions);
	return;
}

# The first combination that gets something wrong is the last.
sub check
{
	my ($name, @combination) = @_;
	eval { within($node, $name, sub { combine(@combination) }); 1 } or push @wrong, $@;
	return unless @wrong;
	fail($name);
	diag(join "\n", @wrong);
	$node->stop('immediate');
	done_testing();
	exit 1;
}

$admin = session('admin');
$admin->query_safe('CREATE TRIGGER zz_guard BEFORE INSERT ON made FOR EACH ROW'
	  . " EXECUTE FUNCTION uuidv7_feed_guard('id')");
my ($combinations, %points) = 0;
foreach my $way (@ways)
{
	my @points = @{ $way->{points} };
	foreach my $point (@points)
	{
		my $at = "$way->{way}, at $point";
		foreach my $action (@actions)
		{
			next if $action->{joined} && $way->{sql} eq $reset;
			next if $action->{begun} && $point !~ /^(clear|wak)/;
			check("$at, beside $action->{does}", $way, $point, $action);
			$combinations++;
		}
		check("$at, and a crash", $way, $point, $actions[0], 1) unless $points{$point}++;
	}
	pass("$way->{way}, held at @points");
}
my @missing = grep { !$points{$_} }
  map { slurp_file($_) =~ /FUUID_TEST_POINT\("(\w+)"\)/g } glob 'src/*/*.c';
is("@missing", '', 'there is a way to each point');
note(keys(%points) . " points, $combinations combinations, and a crash at each point");
$node->stop;
done_testing();

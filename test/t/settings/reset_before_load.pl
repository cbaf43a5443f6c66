# What is reset before the library is loaded stays reset: a session that loads it late has the
# same settings as one that has loaded it first, whatever was set, reset and rolled back in
# between.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RandomSeed;
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('reset');
$node->init;
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app LOGIN;
ALTER ROLE app SET fast_uuid.source = 'urandom';
CREATE ROLE tester LOGIN;
GRANT SET ON PARAMETER fast_uuid.seed TO tester;
GRANT pg_read_all_settings TO app, tester});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

my %values = (
	source         => [qw(xorshift128+ getrandom)],
	seed           => [qw(42 7)],
	buffer_size    => [qw(0 1kB)],
	vdso           => [qw(off on)]);
my @names = sort keys %values;
my $load  = q{SELECT uuidv7_fast_min('2000-01-01Z')};
my $show  = 'SELECT concat_ws(' . q{' ',}
  . join(',', map { "current_setting('fast_uuid.$_')" } @names) . ')';
# With where each value comes from, by which a later reload may change it or not
my $show_all = q{SELECT string_agg(concat_ws(' ', name, setting, source), ', ' ORDER BY name)
  FROM pg_settings WHERE name LIKE 'fast\_uuid.%'};

# What the settings are after these steps, one or several of which look at them, and which
# load the library somewhere; each step is one message.  And what the server warned of.
sub seen_by
{
	my ($packet, @steps) = @_;
	my $session = RawSession->connect($node, user => $superuser, %$packet);
	my @seen;
	foreach my $step (@steps)
	{
		my $rows = ref $step ? $session->pipeline(@$step) : $session->query($step);
		push @seen, $rows if $step =~ /^SELECT (concat_ws|string_agg)/;
		push @seen, $session->{error} if $session->{error} ne '';
	}
	push @seen, @{ $session->{notices} };
	$session->quit;
	return join '|', @seen;
}

# Compare with a session that has loaded the library first: after these steps, which end in a
# savepoint, and after the end of that and of the transaction.
sub check_as_loaded
{
	my ($name, $packet, @steps) = @_;
	foreach my $end ([ 'ROLLBACK TO a', $show_all, 'COMMIT' ], ['COMMIT'], ['ROLLBACK'])
	{
		my $late  = seen_by($packet, @steps, $load, $show_all, @$end, $show_all);
		my $early = seen_by($packet, $load, @steps, $show_all, @$end, $show_all);
		return fail("$name, @$end: $late, not $early") if $late ne $early;
	}
	return pass($name);
}

# --- Every setting, by every way to reset it

my $settings = $node->safe_psql('postgres', "LOAD 'fast_uuid'; SELECT name FROM pg_settings"
	  . q{ WHERE name LIKE 'fast\_uuid.%' ORDER BY 1});
is($settings, join("\n", map { "fast_uuid.$_" } sort @names, 'allowed_sources'),
	'all settings are tried here');

my @resets = ('RESET fast_uuid.%s', 'SET fast_uuid.%s TO DEFAULT', 'RESET ALL',
	'SET LOCAL fast_uuid.%s TO DEFAULT');
my %packets = (
	'a superuser' => {},
	'a setting of the role' => { user => 'app' },
	'a privilege' => { user => 'tester' },
	'a setting of the connection' =>
	  { user => 'app', options => '-c fast_uuid.source=getrandom -c fast_uuid.buffer_size=64' });
foreach my $name (@names)
{
	# The source for each of these; a seed for who may set it.
	foreach my $who ($name eq 'source' ? sort keys %packets
		: $name eq 'seed' ? ('a superuser', 'a privilege') : 'a superuser')
	{
		foreach my $reset (map { sprintf $_, $name } @resets)
		{
			my $packet = $packets{$who};
			my $what   = "$reset, $name, $who";
			my ($set, @local) = map { "fast_uuid.$name = '$_'" } @{ $values{$name} };
			$set = "SET $set";
			check_as_loaded("$what: $_->[-1]", $packet, @$_[ 0 .. $#$_ - 1 ])
			  foreach [ $set, 'BEGIN', $reset, 'SAVEPOINT a', 'in a transaction' ],
			  [ 'BEGIN', $set, 'SAVEPOINT a', $reset, 'all in it' ],
			  [ $set, 'BEGIN', $reset, 'SAVEPOINT a', "SET LOCAL @local", 'set again' ],
			  [ $set, 'BEGIN', "SET LOCAL @local", 'SAVEPOINT a', $reset, 'of SET LOCAL' ];
		}
	}
}

# --- Below two savepoints, of which the outer one is rolled back

foreach my $name (@names)
{
	my ($set, @other) = map { "fast_uuid.$name = '$_'" } @{ $values{$name} };
	my @steps = ("SET $set", 'BEGIN', "RESET fast_uuid.$name", 'SAVEPOINT b', "SET @other",
		'SAVEPOINT a', "SET LOCAL $set");
	my @then = ($show_all, 'RELEASE a', $show_all, 'ROLLBACK TO b', $show_all, 'COMMIT', $show_all);
	is(seen_by({}, @steps, $load, @then), seen_by({}, $load, @steps, @then),
		"$name, two savepoints");

	# Above what was SET, which comes back
	@steps = ('BEGIN', "SET $set", "SET LOCAL fast_uuid.$name TO DEFAULT");
	@then  = ($show_all, 'COMMIT', $show_all);
	is(seen_by({}, @steps, $load, @then), seen_by({}, $load, @steps, @then),
		"$name, SET LOCAL TO DEFAULT above SET");
}

# --- In one message, and in a pipeline, where the library is loaded in the same transaction

foreach my $reset ('RESET fast_uuid.source', 'SET fast_uuid.source TO DEFAULT', 'RESET ALL')
{
	my @steps = ("SET fast_uuid.source = 'xorshift128+'", "SET fast_uuid.seed = '42'");
	my $expected = seen_by({}, $load, @steps, 'RESET fast_uuid.seed', $reset, $show);
	is(seen_by({}, join('; ', @steps, 'RESET fast_uuid.seed', $reset, $load), $show),
		$expected, "$reset in one message");
	is(seen_by({}, [ @steps, 'RESET fast_uuid.seed', $reset, $load ], $show),
		$expected, "$reset in a pipeline");
	is(seen_by({}, @steps, [ 'RESET fast_uuid.seed', $reset, $load ], $show),
		$expected, "$reset in a pipeline, of what was set before");
}

# --- An allowlist that was reset is none; one that comes back holds.

foreach my $reset ('RESET fast_uuid.allowed_sources', 'RESET ALL')
{
	my $session = RawSession->start($node, "SET fast_uuid.allowed_sources = 'urandom'",
		'BEGIN', $reset);
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, "an allowlist after $reset");
	$session->query_safe('ROLLBACK');
	is($session->outcome('SELECT uuidv7_fast()'), '42501', "... and its ROLLBACK");
	$session->quit;
}

# --- A known seed does not stay in force.

my $bits   = 'SELECT right(uuidv7_fast()::text, 12)';
my @seeded = ("SET fast_uuid.source = 'xorshift128+'", "SET fast_uuid.seed = '42'");
my $known  = RawSession->start($node, @seeded)->query_safe($bits);
foreach my $reset ('RESET ALL', 'RESET fast_uuid.seed', 'SET fast_uuid.seed TO DEFAULT')
{
	my $session = RawSession->start($node, @seeded, 'BEGIN', $reset);
	isnt($session->query_safe($bits), $known, "a known seed after $reset");
	$session->quit;
}

# --- Nor does one of the connection, which is refused, come into force below a SET LOCAL.

my $connected = RawSession->connect($node, user => $superuser, options => '-c fast_uuid.seed=42');
$connected->query_safe($_)
  foreach 'BEGIN', "SET fast_uuid.seed = '7'", 'RESET fast_uuid.seed', "SET LOCAL fast_uuid.seed = '9'",
  $load, 'COMMIT';
is($connected->query_safe('SHOW fast_uuid.seed'), '', 'a seed of the connection, below a SET LOCAL');
$connected->quit;

# --- Anything

seed_random();

# So many statements that succeed, of a session that is in these savepoints, if any.
sub random_steps
{
	my ($count, $savepoints) = @_;
	my @steps;
	foreach (1 .. $count)
	{
		my $name  = pick(@names);
		my $value = pick(@{ $values{$name} });
		my $step  = pick(
			"SET fast_uuid.$name = '$value'", "SET LOCAL fast_uuid.$name = '$value'",
			"SELECT set_config('fast_uuid.$name', '$value', false)", 'RESET ALL',
			"RESET fast_uuid.$name", "SET fast_uuid.$name TO DEFAULT",
			"SET LOCAL fast_uuid.$name TO DEFAULT", 'SAVEPOINT a', 'SAVEPOINT a', 'ROLLBACK TO a',
			'RELEASE a', 'COMMIT', 'ROLLBACK');
		if ($step =~ /^(COMMIT|ROLLBACK)$/)
		{
			push @steps, $step;
			$step = 'BEGIN';
			$$savepoints = 0;
		}
		$$savepoints++ if $step eq 'SAVEPOINT a';
		next if $step =~ / a$/ && !$$savepoints;
		$$savepoints-- if $step eq 'RELEASE a';
		push @steps, $step;
	}
	return @steps;
}

my $differ = '';
foreach (1 .. 200)
{
	my $savepoints = 0;
	my @steps = map { "SET fast_uuid.$_ = '" . pick(@{ $values{$_} }) . "'" } pick(@names), pick(@names);
	push @steps, 'BEGIN', random_steps(int rand 12, \$savepoints);
	my @later  = random_steps(int rand 5, \$savepoints);
	my $packet = pick(@packets{ ('a superuser') x 2, 'a setting of the connection' });
	@$_ = grep { !/seed/ } @$_ foreach $packet->{user} ? (\@steps, \@later) : ();
	my $late   = seen_by($packet, @steps, $load, $show, @later, $show);
	my $early  = seen_by($packet, $load, @steps, $show, @later, $show);
	$differ .= join("\n", '', @steps, $load, @later, "late:  $late", "early: $early")
	  if $late ne $early;
}
is($differ, '', 'random statements');

$node->stop;
done_testing();

# What was asked for, or an error: every way to make a setting, before and after
# the library is loaded, preloaded, and with its first load inside a parallel
# operation, against the allowlist, the source, the seed and the order's name.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Attempts;

start_node();
my @states = states(0);

# That the two parallel states are what they say.
my $honest = session('attacker', {});
$honest->query($where{worker});
isnt($honest->query('SELECT wrapped_pid() FROM input WHERE n = 500'),
	$honest->query('SELECT pg_backend_pid()'), 'the worker is another process');
$honest->query($where{leader});
is($honest->query('SELECT wrapped_pid() FROM input WHERE n = 500'),
	$honest->query('SELECT pg_backend_pid()'), 'without workers the leader does it');
like($honest->query('EXPLAIN SELECT wrapped_pid() FROM input WHERE n = 500'), qr/Gather/, 'in a parallel plan');
$honest->quit;

# --- Restricted sources: nobody gets a value from another one.

sub attack_allowlist
{
	my ($where, @states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $what = "allowlist from $where, $way, $state->{name}";
			my ($session, $outcome) = attempt(
				'attacker', $way, $state, wrapped(''),
				'fast_uuid.allowed_sources' => 'xorshift128+', 'fast_uuid.source' => 'xorshift128+');
			unlike($outcome, qr/value/, "$what: no value ($outcome)");
			like($session->{failure}, $way =~ /option|startup/ ? qr/\|Connect without this option\.$/ : qr/\|Use RESET fast_uuid\.allowed_sources in a/, "$what: what to do")
			  if $session->{failure} =~ /^42501 .*\|It was set/;
			foreach my $later ('RESET fast_uuid.allowed_sources', 'RESET ALL', 'DISCARD ALL', 'reload')
			{
				$later eq 'reload' ? reload_in($session) : $session->query($later);
				unlike($session->outcome("SELECT uuidv7_fast('xorshift128+')"), qr/value/, "$what: none after $later");
				unlike($session->outcome('SET fast_uuid.source = "xorshift128+"; INSERT INTO item DEFAULT VALUES'),
					qr/value/, "$what: none by the column's default after $later");
				$session->query('RESET fast_uuid.source');
			}
			like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "$what: what is allowed works in the end")
			  unless $way eq 'option' || $way eq 'startup packet';
			$session->quit;
		}
	}
	return;
}

sub attack_function
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (grep { !$_->{parallel} } @states)
		{
			foreach my $function ('restricted', 'restricted_for_caller')
			{
				my ($session, $outcome) = attempt(
					'attacker', $way, $state, "$function('xorshift128+')",
					'fast_uuid.allowed_sources' => 'xorshift128+');
				unlike($outcome, qr/value/, "allowlist from $function(), $way, $state->{name}: no value ($outcome)");
				$session->quit;
			}
		}
	}
	my ($session, $outcome) = attempt('attacker', 'SET', $states[0], "restricted_for_caller('xorshift128+')");
	unlike($outcome, qr/value/, "restricted_for_caller() without the privilege: no value ($outcome)");
	$session->quit;
	$session = session('attacker', {});
	is($session->outcome("SELECT restricted('xorshift128+')"), '42501', 'restricted() refuses in a fresh session');
	like($session->outcome("SELECT restricted('getrandom')"), qr/value/, 'and gives a value from what it allows');
	$session->quit;
	return;
}

foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom');
	attack_allowlist($where, @states);
	$undo->();
}
attack_function(@states);

# The other side: who was given the privilege restricts, and opens, by option.
foreach my $way (@ways)
{
	my ($session, $outcome) =
	  attempt('trusted', $way, $states[0], "uuidv7_fast('getrandom')", 'fast_uuid.allowed_sources' => 'getrandom');
	like($outcome, qr/value/, "GRANT SET ON PARAMETER, $way: the list is taken");
	is($session->outcome("SELECT uuidv7_fast('xorshift128+')"), '42501', "GRANT SET ON PARAMETER, $way: and holds")
	  unless $way eq 'SET LOCAL';
	is(join('', @{ $session->{notices} }), '', "GRANT SET ON PARAMETER, $way: without a warning");
	$session->quit;
}

# --- A wrong list allows nothing, wherever it stands.

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION misspelt(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom, opnssl' AS
	'BEGIN RETURN uuidv7_fast(source); END'});
my $session = session('attacker', {});
is($session->outcome("SELECT misspelt('openssl')"), '42501', 'a wrong list in a function does not allow openssl');
like(
	$session->{error},
	qr/Unrecognized entropy source: "opnssl".*set by SET, in this session or for a function/,
	'and the error names the mistake, and its place');
unlike($session->outcome("SELECT misspelt('getrandom')"), qr/value/, 'nor, now that the library is loaded, getrandom');
$session->quit;
$session = session('attacker', {});
is($session->outcome("SELECT misspelt('getrandom')"), '42501', 'nor in a fresh session');
$session->quit;
foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom, opnssl');
	foreach my $state (@states)
	{
		$session = session('attacker', {});
		$session->query($state->{before});
		unlike($session->outcome($state->{query}->(wrapped($_))), qr/value/, "a wrong list from $where, $state->{name}: no $_")
		  foreach 'getrandom', 'openssl';
		$session->quit;
	}
	$undo->();
}

# --- The chosen source and order, or an error.

# $how: "way" of a session or place of the DBA; $again: what a fresh session finds.
sub check_choice
{
	my ($how, $state, $session, $outcome, $setting, $value) = @_;
	my $what = "$setting = '$value', $how, $state->{name}";

	if ($value eq 'typo')
	{
		is($outcome, '22023', "$what: the call is refused");
		return;
	}
	like($outcome, qr/value/, "$what: the call is answered");
	return;
}

sub choose_in_session
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my ($session, $outcome) = attempt('attacker', $way, $state, wrapped(''), 'fast_uuid.source' => 'urandom');
			check_choice($way, $state, $session, $outcome, 'source', 'urandom');
			is(used($session), 'urandom', "source = 'urandom', $way, $state->{name}: from nowhere else")
			  if $outcome =~ /value/ && !$state->{worker};
			is(join('', @{ $session->{notices} }), '', "source = 'urandom', $way, $state->{name}: no warning");
			$session->quit;

			# By hand, on a loaded library, the SET itself is refused.
			my $at_once = $state->{known} && $way !~ /option|packet/;
			foreach my $setting ('source', 'ordering', 'required_ordering')
			{
				my $user = $setting eq 'required_ordering' ? $superuser : 'attacker';
				($session, $outcome) = attempt($user, $way, $state, wrapped(''), "fast_uuid.$setting" => 'typo');
				if ($at_once)
				{
					unlike($outcome, qr/22023/, "$setting = 'typo', $way, $state->{name}: the SET was refused");
				}
				else
				{
					check_choice($way, $state, $session, $outcome, $setting, 'typo');
					like($session->{failure}, qr/"typo".*"fast_uuid\.$setting" was set/, "$setting = 'typo', $way, $state->{name}: the error names it")
					  if $outcome eq '22023';
					unlike($session->outcome('SELECT uuidv7_fast()'), qr/value/,
						"$setting = 'typo', $way, $state->{name}: neither does the next call give a value")
					  if $way =~ /^(SET|set_config|option|startup packet)$/;
				}
				$session->quit;
			}
		}
	}
	return;
}

sub choose_for_session
{
	my (@states) = @_;
	my @choices = ([ 'source', 'urandom' ], [ 'source', 'typo' ], [ 'ordering', 'typo' ], [ 'required_ordering', 'typo' ]);
	foreach my $where (sort keys %dba)
	{
		foreach my $choice (@choices)
		{
			my ($setting, $value) = @$choice;
			my $undo = eval { $dba{$where}->("fast_uuid.$setting", $value) };
			if (!defined $undo)
			{
				ok($value eq 'typo' && $where ne 'file' && $states[0]{known}, "$setting = '$value' is refused for $where at once");
				next;
			}
			foreach my $state (@states)
			{
				my $session = session('attacker', {});
				$session->query($state->{before});
				my $outcome = $session->outcome($state->{query}->(wrapped('')));
				$session->{failure} = $session->{error};
				check_choice($where, $state, $session, $outcome, $setting, $value);
				if ($outcome =~ /value/)
				{
					is(used($session), 'urandom', "$setting = '$value', $where, $state->{name}: from nowhere else")
					  if !$state->{worker};
				}
				elsif ($outcome eq '22023')
				{
					my $place = $where eq 'file' ? 'in the configuration file' : 'by ALTER (DATABASE|ROLE)';
					like($session->{error}, qr/"typo".*"fast_uuid\.$setting" was set $place/, "$setting = '$value', $where, $state->{name}: it and its place are named");
				}
				$session->quit;
			}
			$undo->();
		}
	}
	return;
}

choose_in_session(@states);
choose_for_session(@states);

# A living session that reads a wrong file again.
$session = session('attacker', {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a living session has a source');
foreach my $setting ('source', 'allowed_sources', 'ordering', 'required_ordering')
{
	append_to_file($node->data_dir . '/dba.conf', "fast_uuid.$setting = 'typo'\n");
	reload_in($session);
	unlike($session->outcome('SELECT uuidv7_fast()'), qr/value/, "and none after a reload with a wrong $setting");
	like($session->{error}, qr/"typo".* in the configuration file/, 'the error names it and its place');
	is(join('', @{ $session->{notices} }), '', 'and nobody else is told');
	unlink $node->data_dir . '/dba.conf';
	reload_in($session);
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and once it is corrected the session goes on');
}
$session->quit;

# --- A wrong number or switch is no default either.

my %wrong = (buffer_size => '64.1kB', vdso => '2', max_clock_lead => '-2');
foreach my $setting (sort keys %wrong)
{
	foreach my $way (@ways)
	{
		my ($session, $outcome) = attempt('attacker', $way, $states[0], 'uuidv7_fast()', "fast_uuid.$setting" => 'typo');
		is($outcome, '22023', "$setting = 'typo', $way: the call is refused");
		like($session->{failure}, qr/invalid value for parameter "fast_uuid.$setting": "typo"/, "$setting = 'typo', $way: and says why");
		$session->quit;
	}
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->("fast_uuid.$setting", $wrong{$setting});
		$session = session('attacker', {});
		is($session->outcome('SELECT uuidv7_fast()'), '22023', "$setting = '$wrong{$setting}' from $where: the call is refused");
		$session->quit;
		$undo->();
	}
}

# --- A seed is taken from SET alone, by who may.

my $seeded    = 'right(%s::text, 12)';
$session = session($superuser, {});
my $first = $session->query("SET fast_uuid.seed = '42'; " . sprintf "SELECT $seeded", "uuidv7_fast('xorshift128+')");
$session->quit;
like($first, qr/^[0-9a-f]{12}$/, 'a seed gives known random bits');

sub seeds
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $call = sprintf $seeded, wrapped('xorshift128+');
			my ($session, $outcome) = attempt($superuser, $way, $state, $call, 'fast_uuid.seed' => '42');
			my $what = "seed, superuser, $way, $state->{name}";
			if ($way eq 'option' || $way eq 'startup packet')
			{
				is($outcome, '0A000', "$what: not taken");
				like($session->{failure}, qr/seed" was set by a connection option\. Remove it there; a seed is accepted only from SET/, "$what: the error says so");
				like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "$what: other sources work");
			}
			else
			{
				like($outcome, qr/^value [0-9a-f]{12}$/, "$what: a value");
				ok(($outcome eq "value $first") == !$state->{worker}, "$what: the seed's, but for a worker's stream of its own");
			}
			$session->quit;

			($session, $outcome) = attempt('attacker', $way, $state, $call, 'fast_uuid.seed' => '42');
			isnt($outcome, "value $first", "seed, ordinary role, $way, $state->{name}: not taken ($outcome)");
			$session->quit;
		}
	}
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->('fast_uuid.seed', '42');
		foreach my $state (@states)
		{
			my $session = session('attacker', {});
			$session->query($state->{before});
			my $outcome = $session->outcome($state->{query}->(wrapped('xorshift128+')));
			is($outcome, '0A000', "seed from $where, $state->{name}: refused ($outcome)");
			like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "seed from $where, $state->{name}: other sources work")
			  if $outcome eq '0A000';
			$session->quit;
		}
		$undo->();
	}
	return;
}

seeds(@states);

# --- The same where the server has loaded the library.

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->restart;
@states = states(1);

foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom');
	attack_allowlist($where, @states);
	$undo->();
}
attack_function(@states);
choose_in_session(@states);
choose_for_session(@states);
seeds(@states);

$node->stop;
done_testing();

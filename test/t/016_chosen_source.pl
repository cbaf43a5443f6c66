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
			is($outcome, '42501', "$what: the call is refused") if $way =~ /option|packet/ && !$state->{known} && !$session->{closed};
			like($session->{failure}, qr/\|Use RESET fast_uuid\.allowed_sources, or connect without the option/, "$what: what to do")
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

# --- A wrong list or a wrong order required: no UUID.

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION misspelt(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom, opnssl' AS
	'BEGIN RETURN uuidv7_fast(source); END'});
foreach my $before ('', $loading)
{
	my $session = session('attacker', {});
	$session->query($before);
	is($session->outcome("SELECT misspelt('$_')"), '22023', "a wrong list in a function, after '$before': no UUID from $_") foreach 'openssl', 'getrandom';
	like($session->{error}, qr/"fast_uuid\.allowed_sources": "getrandom, opnssl"/, 'and the error names it');
	$session->quit;
}
foreach my $case ([ allowed_sources => 'getrandom,opnssl' ], [ required_ordering => 'typo' ])
{
	my ($setting, $value) = ("fast_uuid.$case->[0]", $case->[1]);
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->($setting, $value);
		foreach my $state (@states)
		{
			my $session = session('attacker', {});
			$session->query($state->{before});
			is($session->outcome($state->{query}->(wrapped('openssl'))), '22023', "a wrong $setting from $where, $state->{name}: no UUID");
			$session->quit;
		}
		$undo->();
	}
	foreach my $way (@ways)
	{
		foreach my $state (grep { !$_->{known} } @states)
		{
			my ($session, $outcome) = attempt($superuser, $way, $state, wrapped('openssl'), $setting => $value);
			is($outcome, '22023', "a wrong $setting, $way, $state->{name}: no UUID");
			$session->quit;
		}
	}
}

# --- The chosen source, in whatever way it was chosen.

sub choose_in_session
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $what = "source = 'urandom', $way, $state->{name}";
			my ($session, $outcome) = attempt('attacker', $way, $state, wrapped(''), 'fast_uuid.source' => 'urandom');
			like($outcome, qr/value/, "$what: the call is answered");
			is(used($session), 'urandom', "$what: from nowhere else") if !$state->{worker};
			is(join('', @{ $session->{notices} }), '', "$what: no warning");
			$session->quit;

			# One that is not allowed, or does not work, is a wish like any other.
			$what = "source = 'xorshift128+', not allowed, $way, $state->{name}";
			($session, $outcome) = attempt($superuser, $way, $state, wrapped(''),
				'fast_uuid.source' => 'xorshift128+', 'fast_uuid.allowed_sources' => 'getrandom');
			is($outcome, '42501', "$what: the call is refused");
			$session->quit;
		}
	}
	return;
}

sub choose_for_session
{
	my (@states) = @_;
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->('fast_uuid.source', 'urandom');
		foreach my $state (@states)
		{
			my $session = session('attacker', {});
			$session->query($state->{before});
			like($session->outcome($state->{query}->(wrapped(''))), qr/value/, "source = 'urandom', $where, $state->{name}: the call is answered");
			is(used($session), 'urandom', "source = 'urandom', $where, $state->{name}: from nowhere else") if !$state->{worker};
			$session->quit;
		}
		$undo->();
	}
	return;
}

choose_in_session(@states);
choose_for_session(@states);

# A session that has the library keeps what it has when it reads a wrong file.
my $session = session('attacker', {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a session has a source');
foreach my $setting ('source', 'allowed_sources', 'ordering', 'required_ordering')
{
	my $before = $session->query("SHOW fast_uuid.$setting");
	append_to_file($node->data_dir . '/dba.conf', "fast_uuid.$setting = 'typo'\n");
	reload_in($session);
	is($session->query("SHOW fast_uuid.$setting"), $before, "after a reload with a wrong $setting it has the same");
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and generates');
	unlink $node->data_dir . '/dba.conf';
	reload_in($session);
}
$session->quit;

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
				isnt($outcome, "value $first", "$what: not taken");
				like(join('', @{ $session->{notices} }) . $session->{error}, qr/invalid value for parameter "fast_uuid\.seed": "42"/, "$what: and that is said")
				  if !$state->{worker};
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
			like($outcome, qr/^value/, "seed from $where, $state->{name}: a value");
			isnt($outcome, "value $first", "seed from $where, $state->{name}: not the seed's");
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

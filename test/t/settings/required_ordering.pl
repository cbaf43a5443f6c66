# fast_uuid.required_ordering: nobody without the privilege gets a value outside of
# the order that the DBA requires, in whichever way and at whichever moment a
# setting is made; and SHOW tells what was set.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Attempts;

start_node("shared_preload_libraries = 'fast_uuid'\n");
# The library is loaded when a session begins.
my (undef, @states) = states();
$node->safe_psql(
	'postgres', q{
-- The order of the instance is kept a day ahead of the clock: a value that is not,
-- is outside of it.
CREATE FUNCTION ahead(id uuid) RETURNS bool LANGUAGE sql AS
	$$SELECT id > uuidv7_fast_max(clock_timestamp() + interval '12 hours')$$;
CREATE FUNCTION ordered() RETURNS bool PARALLEL RESTRICTED LANGUAGE plpgsql AS 'BEGIN RETURN ahead(uuidv7_fast()); END';
CREATE FUNCTION ordered_by_owner() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.required_ordering = 'instance' AS 'BEGIN RETURN ahead(uuidv7_fast()); END';
CREATE FUNCTION ordered_by_caller() RETURNS bool LANGUAGE plpgsql
	SET fast_uuid.required_ordering = 'instance' AS 'BEGIN RETURN ahead(uuidv7_fast()); END';
GRANT SELECT ON item TO PUBLIC;
});
my ($required, $chosen) = ('fast_uuid.required_ordering', 'fast_uuid.ordering');

sub lead_instance
{
	my $session = session($superuser, {});
	$session->query($_) foreach "SET $chosen = 'instance'", "SET fast_uuid.max_clock_lead = '2d'",
	  "SELECT fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + interval '1 day'))";
	is($session->outcome('SELECT ordered()'), 'value t', 'the order of the instance is a day ahead');
	$session->quit;
	return;
}

# What a user may not set is an error, of the SET or of the call, and what he may
# changes nothing; whatever he tries afterwards.
sub attack
{
	my ($where, %settings) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $what = join ' and ', "required by $where, $way, $state->{name}: " . (sort keys %settings)[0], (sort keys %settings)[1] // ();
			my ($session, $outcome) = attempt('attacker', $way, $state, 'ordered()', %settings);
			my @outside;

			$settings{$required}
			  ? ok($outcome eq 'value t' || $outcome !~ /value/, "$what: an error, or the order required ($outcome)")
			  : is($outcome, 'value t', "$what: the order required");
			foreach my $later ("SET $chosen = 'session'", "RESET $required", 'RESET ALL', 'DISCARD ALL', 'reload')
			{
				$later eq 'reload' ? reload_in($session) : $session->query($later);
				push @outside, "$later; $_"
				  foreach grep { $session->outcome($_) =~ /value f/ } 'SELECT ordered()', 'INSERT INTO item DEFAULT VALUES RETURNING ahead(id)';
			}
			is(join("\n", @outside), '', "$what: no value outside of it later");
			is($session->outcome('SELECT ordered()'), 'value t', "$what: the order required in the end")
			  unless $settings{$required} && $way =~ /option|packet/;
			$session->quit;
		}
	}
	return;
}

sub attack_function
{
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			foreach my $function ('ordered_by_owner', 'ordered_by_caller')
			{
				my ($session, $outcome) = attempt('attacker', $way, $state, "$function()", $required => 'session', $chosen => 'session');
				unlike($outcome, qr/value f/, "required by $function(), $way, $state->{name}: no value outside of it ($outcome)");
				$session->quit;
			}
		}
	}
	my $session = session('attacker', {});
	is($session->outcome("SET $chosen = 'session'; SELECT ordered_by_owner()"), 'value t', 'ordered_by_owner() requires its order in a fresh session');
	is($session->query("SHOW $chosen; SHOW $required"), "session\nsession", 'and leaves the session\'s own as it was');
	$session->quit;
	return;
}

# The other side: who may set it, for how long, and what SHOW tells.
sub honest
{
	foreach my $user ($superuser, 'trusted')
	{
		foreach my $way (@ways)
		{
			foreach my $state (@states)
			{
				my $what = "$user, $way, $state->{name}";
				my ($session, $outcome) = attempt($user, $way, $state, 'ordered()', $required => 'instance');
				is($outcome, 'value t', "$what: the order required");
				is(join('', @{ $session->{notices} }), '', "$what: without a warning");
				is($session->query("SHOW $chosen"), 'session', "$what: SHOW tells what was set");
				$session->quit;
			}
		}
	}
	foreach my $case (
		[ "BEGIN; SET LOCAL $required = 'instance'", 'value t' ],
		[ "BEGIN; SET LOCAL $required = 'instance'; ROLLBACK", 'value f' ],
		[ "BEGIN; SET $required = 'instance'; ROLLBACK", 'value f' ],
		[ "BEGIN; SAVEPOINT a; SET $required = 'instance'; ROLLBACK TO a", 'value f' ],
		[ "SET $required = 'instance'; BEGIN; SET LOCAL $chosen = 'session'", 'value t' ],
		[ "SET $chosen = 'instance'; SET $required = 'session'", 'value t' ],
		[ "SET $required = 'instance'; SET $required = 'session'", 'value f' ])
	{
		foreach my $state (@states)
		{
			my $session = session($superuser, {});
			$session->query($state->{before});
			$session->query($_) foreach split /; /, $case->[0];
			is($session->outcome($state->{query}->('ordered()')), $case->[1], "$case->[0], $state->{name}: what is in force");
			$session->quit;
		}
	}

	# A set that was begun before follows it from the next row on.
	my $session = session($superuser, {});
	$session->query($_) foreach 'BEGIN', 'DECLARE c CURSOR FOR SELECT ahead(uuidv7_fast_set(100))';
	is($session->outcome('FETCH c'), 'value f', 'a set under session order');
	is($session->outcome("SET LOCAL $required = 'instance'; FETCH c"), 'value t', 'its next row under the order required');
	$session->quit;
	return;
}

lead_instance();
attack_function();
honest();
foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->($required, 'instance');
	lead_instance();
	attack($where, $required => 'session', $chosen => 'session');
	is(session('attacker', {})->outcome('SELECT ordered()'), 'value t', "required by $where: in a fresh session");
	$undo->();
}

# In a session that goes on when the file changes.
lead_instance();
my $session = session('attacker', {});
is($session->outcome("SET $chosen = 'session'; SELECT ordered()"), 'value f', 'a session under its own order');
append_to_file($node->data_dir . '/dba.conf', "$required = 'instance'\n");
reload_in($session);
is($session->outcome('SELECT ordered()'), 'value t', 'after a reload the order required is in force');
is($session->query("SHOW $chosen"), 'session', 'SHOW tells what was set');
is(join('', @{ $session->{notices} }), '', 'without a warning');
$session->quit;

$node->stop;
done_testing();

# The commands of SettingsWorld.pm: how each is chosen at random, and what is to come
# of it.  A command is [session, kind, arguments].

package SettingsCommands;

use strict;
use warnings;

use RandomHistory;
use SettingsModel qw(%settings);

my @names = sort keys %settings;

# Functions with a SET clause: the setting, its text, whether they run with the
# rights of their owner, a superuser; the call, and the source that it names.
my %functions = (
	'chosen()'        => { clause => [ 'source', 'urandom' ] },
	'mistyped()'      => { clause => [ 'source', 'typo' ] },
	'ordered()'       => { clause => [ 'ordering', 'instance' ] },
	'badly_sized()'   => { clause => [ 'buffer_size', 'typo' ] },
	'unbuffered()'    => { clause => [ 'buffer_size', '0' ] },
	'seeded()'        => { clause => [ 'seed', '42' ], definer => 1, source => 'xorshift128+' },
	'seeded_for_caller()' => { clause => [ 'seed', '7' ], source => 'xorshift128+' },
	map {
		("restricted('$_')"            => { clause => [ 'allowed_sources', 'getrandom' ], definer => 1, source => $_ },
		 "restricted_for_caller('$_')" => { clause => [ 'allowed_sources', 'getrandom' ], source => $_ })
	} 'getrandom', 'xorshift128+');

# What they are made by, in a session that does not know the settings.
sub functions_sql
{
	my %made;
	foreach my $call (sort keys %functions)
	{
		my ($name, $argument) = $call =~ /^(\w+)\((.*)\)$/;
		my $function = $functions{$call};
		my $from = $argument ? 'source' : $function->{source} ? "'$function->{source}'" : '';
		my ($setting, $text) = @{ $function->{clause} };
		$made{$name} = "CREATE FUNCTION $name(" . ($argument ? 'source text' : '') . ') RETURNS uuid LANGUAGE plpgsql '
		  . ($function->{definer} ? 'SECURITY DEFINER ' : '') . "SET fast_uuid.$setting = '$text' AS "
		  . "\$\$ BEGIN RETURN uuidv7_fast($from); END \$\$;\n";
	}
	return join '', map { $made{$_} } sort keys %made;
}

my %weights = (
	set       => 26,
	reset     => 8,
	all       => 4,
	role      => 4,
	control   => 22,
	call      => 30,
	function  => 10,
	changing  => 4,
	in_vain   => 6,
	dba       => 3,
	alter_own => 3,
	file      => 2,
	reconnect => 8);

sub choose
{
	my ($self, $random) = @_;
	my $number  = $random->(scalar @{ $self->{sessions} });
	my $session = $self->{sessions}[$number];
	my $failed  = $session->{state}{status} eq 'failed';
	my @kinds   = $failed && chance($random, 70) ? 'control' : map { ($_) x $weights{$_} } sort keys %weights;
	my $kind    = one_of($random, @kinds);
	my $choose  = "choose_$kind";
	return [ $number, $kind, $self->$choose($random, $session) ];
}

sub perform
{
	my ($self, $command) = @_;
	my ($number, $kind, @arguments) = @$command;
	my $do = "do_$kind";
	$self->{acting} = $number;
	$self->{sessions}[$number]{fresh} = 0 if $kind ne 'call';
	$self->$do($self->{sessions}[$number], @arguments);
	$self->check($_) foreach @{ $self->{sessions} };
	return;
}

sub choose_value
{
	my ($random, $name, $right) = @_;
	return one_of($random, grep { !$right || defined $settings{$name}{shows}{$_} } sort keys %{ $settings{$name}{shows} });
}

sub choose_set
{
	my (undef, $random) = @_;
	my $name = one_of($random, @names);
	my $text = choose_value($random, $name, chance($random, 60));
	return ($name, $text, one_of($random, 'SET', 'SET', 'SET LOCAL', 'set_config'), $random->(2));
}

sub do_set
{
	my ($self, $session, $name, $text, $how, $local) = @_;
	my ($model, $state) = ($self->{model}, $session->{state});
	$local = $how eq 'SET LOCAL' if $how ne 'set_config';
	my @errors = $state->refuses('SET') || $model->set_errors($model->role($session), $name, $text);
	my $sql    = "$how fast_uuid.$name = '$text'";
	$sql = "SELECT set_config('fast_uuid.$name', '$text', " . ($local ? 'true)' : 'false)') if $how eq 'set_config';
	$self->run($session, 'SET', $sql, @errors);
	$self->set($session, $name, $text, $local) unless @errors;
	return;
}

sub set
{
	my ($self, $session, $name, $text, $local) = @_;
	$session->{state}->set($name, { text => $text, from => 'session', by => $self->{model}->role($session) }, $local);
	$self->note_signature($session);
	$session->{fresh} = 1 if $name eq 'seed' && !($local && $session->{state}{status} eq 'idle');
	return;
}

sub choose_reset { my (undef, $random) = @_; return (one_of($random, @names), $random->(3) == 0 ? 1 : 0) }

sub do_reset
{
	my ($self, $session, $name, $local) = @_;
	my ($model, $state) = ($self->{model}, $session->{state});
	my @errors = $state->refuses('SET') || $model->set_errors($model->role($session), $name);
	$self->run($session, 'RESET', $local ? "SET LOCAL fast_uuid.$name TO DEFAULT" : "RESET fast_uuid.$name", @errors);
	$state->set($name, undef, $local) unless @errors;
	return;
}

sub choose_all { my (undef, $random) = @_; return one_of($random, 'RESET', 'RESET', 'DISCARD') }

sub do_all
{
	my ($self, $session, $verb) = @_;
	my $state = $session->{state};
	my @errors = $state->refuses('SET') || ($verb eq 'DISCARD' && $state->{status} ne 'idle' ? '25001' : ());
	$self->run($session, "$verb ALL", "$verb ALL", @errors);
	return if @errors;
	$state->reset_all;
	$state->set('role', undef) if $verb eq 'DISCARD';
	return;
}

sub choose_role { my (undef, $random) = @_; return (one_of($random, 'app', 'trusted', 'NONE'), $random->(3) == 0 ? 1 : 0) }

# A superuser's session can be in any role, any other in its own.
sub do_role
{
	my ($self, $session, $role, $local) = @_;
	my $state = $session->{state};
	my $may = $role eq 'NONE' || $session->{user} eq $role || $session->{user} eq $self->{model}{superuser};
	my @errors = $state->refuses('SET') || ($may ? () : '42501');
	$self->run($session, 'SET ROLE', 'SET ' . ($local ? 'LOCAL ' : '') . "ROLE $role", @errors);
	$state->set('role', { text => $role eq 'NONE' ? $session->{user} : $role }, $local) unless @errors;
	return;
}

sub choose_control { my (undef, $random, $session) = @_; return $session->{state}->choose_control($random, 60) }

sub do_control
{
	my ($self, $session, $verb, $name) = @_;
	my $refused = $session->{state}->refuses($verb, $name);
	$self->run($session, $verb, $verb . ($verb =~ /SAVEPOINT|RELEASE|TO/ ? " $name" : ''), $refused || ());
	$session->{state}->control($verb, $name) unless $refused;
	return;
}

# The call, how many ids it generates from its source, whether it is in the order.
my %calls = (
	single => [ 'uuidv7_fast(%s)', 1, 1 ],
	shift  => [ "uuidv7_fast(interval '1 hour'%s)", 1, 1 ],
	array  => [ 'uuidv7_fast_array(20%s)', 20, 1 ],
	set    => [ 'uuidv7_fast_set(3%s)', 3, 1 ],
	at     => [ "uuidv7_fast_at('2001-02-03Z'%s)", 1, 0 ]);

sub choose_call
{
	my (undef, $random) = @_;
	my @sources = ('', '', '', sort keys %{ $settings{source}{shows} });
	return (one_of($random, 'single', 'single', sort keys %calls), one_of($random, @sources));
}

sub do_call
{
	my ($self, $session, $kind, $source) = @_;
	my ($pattern, $count, $ordered) = @{ $calls{$kind} };
	my $argument = $source eq '' ? '' : ($kind eq 'single' ? '' : ', ') . "'$source'";
	my $refused  = $session->{state}->refuses('SELECT');
	my ($errors, $seed) = $refused ? [$refused] : $self->expect_call($session, $source eq '' ? undef : $source, $count, $ordered);
	my $id = $self->run($session, 'call', 'SELECT ' . sprintf($pattern, $argument), @$errors);
	$self->check_seed($id, $seed) if $kind eq 'single';
	return;
}

sub choose_function { my (undef, $random) = @_; return one_of($random, sort keys %functions) }

sub do_function
{
	my ($self, $session, $call) = @_;
	my ($model, $state, $function) = ($self->{model}, $session->{state}, $functions{$call});
	my ($name, $text) = @{ $function->{clause} };
	my $refused = $state->refuses('SELECT');
	my $role    = $function->{definer} ? $model->{superuser} : $model->role($session);
	my @errors  = $refused || $model->set_errors($role, $name, $text);
	my $seed;
	$state->within(
		sub {
			$state->set($name, { text => $text, from => 'session', by => $role }, 1);
			$self->note_signature($session);
			$session->{fresh} = $name eq 'seed';
			(my $found, $seed) = $self->expect_call($session, $function->{source}, 1, 1);
			@errors = @$found;
		}) if !@errors;
	my $id = $self->run($session, 'function', "SELECT $call", @errors);
	$self->check_seed($id, $seed) if !@errors;
	$session->{fresh} = 0;
	return;
}

# A function with a SET clause sets something, which stays.
sub choose_changing
{
	my (undef, $random) = @_;
	my $name = one_of($random, @names);
	return ($name, choose_value($random, $name));
}

sub do_changing
{
	my ($self, $session, $name, $text) = @_;
	my $model  = $self->{model};
	my @errors = $session->{state}->refuses('SELECT') || $model->set_errors($model->role($session), $name, $text);
	$self->run($session, 'changing', "SELECT changing('fast_uuid.$name', '$text')", @errors);
	$self->set($session, $name, $text) unless @errors;
	$session->{fresh} = 0;
	return;
}

# Set and used in a subtransaction that is rolled back.
sub choose_in_vain
{
	my (undef, $random) = @_;
	my $name = one_of($random, @names);
	return ($name, choose_value($random, $name, chance($random, 60)));
}

sub do_in_vain
{
	my ($self, $session, $name, $text) = @_;
	my ($model, $state) = ($self->{model}, $session->{state});
	my $sql = "SELECT in_vain('fast_uuid.$name', '$text')";
	if (my $refused = $state->refuses('SELECT'))
	{
		$self->run($session, 'in vain', $sql, $refused);
		return;
	}
	my @errors = $model->set_errors($model->role($session), $name, $text);
	$state->within(
		sub {
			$self->set($session, $name, $text, 1);
			my ($found) = $self->expect_call($session, undef, 1, 1);
			@errors = @$found;
		}) if !@errors;
	my $answer = $self->run($session, 'in vain', $sql);
	$self->check_outcome('in vain, inside', length $answer == 5 ? $answer : '', @errors);
	$session->{fresh} = 0;
	return;
}

# ALTER by the DBA, for sessions that begin later.
my @places = ('ROLE ALL', 'DATABASE postgres', map { ("ROLE $_", "ROLE $_ IN DATABASE postgres") } 'app', 'trusted');

sub choose_dba
{
	my ($self, $random) = @_;
	my $name = one_of($random, @names);
	return (one_of($random, @places), $name, chance($random, 40) ? undef : choose_value($random, $name, 1));
}

sub do_dba
{
	my ($self, undef, $place, $name, $text) = @_;
	$self->{node}->safe_psql('postgres', alter_sql($place, $name, $text));
	$self->log("the DBA: " . alter_sql($place, $name, $text));
	$self->alter($place, $name, $text);
	return;
}

sub alter_sql
{
	my ($place, $name, $text) = @_;
	return "ALTER $place " . (defined $text ? "SET fast_uuid.$name = '$text'" : "RESET fast_uuid.$name");
}

sub alter
{
	my ($self, $place, $name, $text) = @_;
	my $there = $self->{model}{dba}{$place} //= {};
	defined $text ? $there->{$name} = $text : delete $there->{$name};
	return;
}

# ... and by a session for its own role, outside of a transaction.
sub choose_alter_own
{
	my ($self, $random) = @_;
	my $name = one_of($random, @names);
	return ($name, chance($random, 40) ? undef : choose_value($random, $name));
}

sub do_alter_own
{
	my ($self, $session, $name, $text) = @_;
	my ($model, $state) = ($self->{model}, $session->{state});
	my $role = $model->role($session);
	return if $state->{status} eq 'open';

	# Where there is nothing to be taken back the server does not ask further, before 19.
	my $takes_back = %{ $model->{dba}{"ROLE $role"} // {} } || $model->{asks_anyway};
	my @errors = $state->refuses('SELECT')
	  || (defined $text || $takes_back ? $model->set_errors($role, $name, $text) : ());
	$self->run($session, 'ALTER of the own role', alter_sql("ROLE $role", $name, $text), @errors);
	$self->alter("ROLE $role", $name, $text) unless @errors;
	return;
}

# The file, read again by all sessions.
sub choose_file
{
	my ($self, $random) = @_;
	my $name = one_of($random, @names);
	return ($name, chance($random, 40) ? undef : choose_value($random, $name, 1));
}

sub do_file
{
	my ($self, undef, $name, $text) = @_;
	return if grep { $_->{state}{status} eq 'failed' } @{ $self->{sessions} };
	my $file = $self->{model}{file};
	defined $text ? $file->{$name} = $text : delete $file->{$name};
	my $lines = join '', map { "fast_uuid.$_ = '$file->{$_}'\n" } sort keys %$file;
	$self->{has}{write_file}->($lines, map { $_->{raw} } @{ $self->{sessions} });
	$self->log("the file: fast_uuid.$name is " . ($text // 'not set'));
	$_->{fresh} = 0 foreach @{ $self->{sessions} };
	return;
}

sub choose_reconnect
{
	my ($self, $random) = @_;
	my @options = map { one_of($random, @names) } 1 .. one_of($random, 0, 0, 0, 1, 1, 2);
	return (one_of($random, @{ $self->{users} }), map { ($_ => choose_value($random, $_, 1)) } @options);
}

sub do_reconnect
{
	my ($self, undef, $user, %options) = @_;
	$self->connect_session($self->{acting}, $user, \%options);
	return;
}

1;

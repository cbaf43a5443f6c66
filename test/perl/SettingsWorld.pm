# Sessions of a superuser, of a role with a granted privilege and of an ordinary one,
# which make settings and generate at random; each outcome compared with
# SettingsModel.pm.  A command is [session, kind, arguments].

package SettingsWorld;

use strict;
use warnings;

use RandomHistory;
use RawSession;
use SettingsCommands;
use SettingsModel qw(%settings @sources);

our @ISA = ('SettingsCommands');

my @names = sort keys %settings;

sub new
{
	my ($class, $node, $server, %has) = @_;
	my $self = bless { node => $node, has => \%has, model => SettingsModel->new(%$server) }, $class;
	@$self{qw(sessions log acting)} = ([], [], 0);
	$self->{users} = [ $server->{superuser}, 'trusted', 'app', 'app' ];
	$self->connect_session(0, 'app', {});
	$self->connect_session(1, $server->{superuser}, {});
	return $self;
}

# What the DBA has made is taken back.
sub close
{
	my ($self) = @_;
	$_->{raw}->quit foreach @{ $self->{sessions} };
	$self->{model}{file} = {};
	$self->{has}{write_file}->('');
	my $dba = $self->{model}{dba};
	$self->{node}->safe_psql('postgres', join '', map { "ALTER $_ RESET ALL;" } sort keys %$dba) if %$dba;
	return;
}

sub log
{
	my ($self, $line) = @_;
	push @{ $self->{log} }, $line;
	return;
}

sub connect_session
{
	my ($self, $number, $user, $options) = @_;
	$self->{sessions}[$number]{raw}->quit if $self->{sessions}[$number];
	my @expected = $self->{model}->connection_errors($user, %$options);
	my $option   = join ' ', map { "-c fast_uuid.$_=" . $options->{$_} =~ s/ /\\ /gr } sort keys %$options;
	my $raw      = $self->raw_session($user, $option);
	$raw->query("SELECT uuidv7_fast_min('2000-01-01Z')") if !$raw->{closed};
	my $result = substr $raw->{error}, 0, 5;
	$self->log("session $number: connects as $user $option: $result");
	$self->check_outcome('connection', $result, @expected);
	if ($result)
	{
		$options = {};
		$raw->quit;
		$raw = $self->raw_session($user, '');
		$raw->query("SELECT uuidv7_fast_min('2000-01-01Z')");
	}
	my $session = $self->{model}->new_session($user, %$options);
	$self->{sessions}[$number] = $session;
	@$session{qw(raw refills wiped)} = ($raw, {}, { map { $_ => 1 } @sources });
	$session->{signature} = $self->{model}->signature($session);
	return;
}

sub raw_session
{
	my ($self, $user, $option) = @_;
	return RawSession->connect($self->{node}, user => $user, database => 'postgres', $option ? (options => $option) : ());
}

sub check_outcome
{
	my ($self, $what, $result, @expected) = @_;
	differs("outcome: $what", "$what: " . ($result || 'no error') . ', not ' . (join(' or ', @expected) || 'no error'))
	  if @expected ? !grep { $_ eq $result } @expected : $result ne '';
	$self->{has}{tally}{"$what: " . ($result || 'done')}++;
	return;
}

# Run a statement, whose outcome is to be one of these errors, or none; its rows.
sub run
{
	my ($self, $session, $what, $sql, @expected) = @_;
	my $rows   = $session->{raw}->query($sql);
	my $result = substr $session->{raw}{error}, 0, 5;
	$self->log("session $self->{acting}: $sql: $rows $result");
	$self->check_outcome($what, $result, @expected);
	$session->{state}->fail if $result;
	return $rows;
}

# What a session shows of its settings and of what it has fetched.
sub check
{
	my ($self, $session) = @_;
	my $model = $self->{model};
	$self->note_signature($session);
	return if $session->{state}{status} eq 'failed';
	my $sql = q{SELECT concat_ws('|', name, setting) FROM pg_settings WHERE name LIKE 'fast\_uuid.%'
		UNION ALL SELECT concat_ws('|', name, refills) FROM fast_uuid_stats() WHERE kind = 'source'
		UNION ALL SELECT concat_ws('|', 'of ' || name, allowed, current) FROM fast_uuid_sources()};
	my %seen = map { /^(.*?)\|(.*)$/ ? ($1 => $2) : ($_ => '') } split /\n/, $session->{raw}->query($sql);
	differs('outcome: check', "a look at the settings: $session->{raw}{error}") if $session->{raw}{error};
	foreach my $name (@names)
	{
		my ($shown, $is) = ($model->shown($session, $name), $seen{"fast_uuid.$name"});
		disagrees("shown: $name", "fast_uuid.$name is \"$is\", not \"$shown\"") if $is ne $shown;
	}
	my $asked = delete $session->{asked} // {};

	my %allowed = map { $_ => 1 } $model->allowed($session);
	foreach my $source (@sources)
	{
		my $of = ($allowed{$source} ? 't' : 'f') . '|' . (($model->source_of($session) // '') eq $source ? 't' : 'f');
		my $is = $seen{"of $source"};
		disagrees('sources', "fast_uuid_sources(), $source: allowed and current are $is, not $of") if $is ne $of;

		my $more = $seen{$source} - ($session->{refills}{$source} // 0);
		my ($least, $most) = @{ $asked->{$source} // [ 0, 0 ] };
		disagrees('refills', "$source was asked $more times, not from $least to $most") if $more < $least || $more > $most;
		$session->{refills}{$source} = $seen{$source};
	}
	return;
}

# Bits that were fetched ahead are wiped by a change of what is in force.
sub note_signature
{
	my ($self, $session) = @_;
	my $signature = $self->{model}->signature($session);
	return if $signature eq $session->{signature};
	$session->{signature} = $signature;
	$session->{wiped}     = { map { $_ => 1 } @sources };
	$session->{fresh}     = 0;
	return;
}

# What a call of so many ids is to come to: its errors; where there is none, the
# source that it asks, and whether its first bits are those of the seed.
sub expect_call
{
	my ($self, $session, $text, $count, $ordered) = @_;
	my $model = $self->{model};
	$self->note_signature($session);
	my @errors = $model->call_errors($session, $text, $ordered);
	my $source = $model->source_of($session, $text);
	return \@errors if !defined $source;

	# After an error it is not told whether the source was asked before.
	my $asked = $session->{asked}{$source} //= [ 0, 0 ];
	my $each  = $model->shown($session, 'buffer_size') =~ /^\d$/;
	$asked->[0] += $each ? $count : $session->{wiped}{$source} ? 1 : 0 unless @errors;
	$asked->[1] += $count;
	$session->{wiped}{$source} = 0;
	my $seed = $source eq 'xorshift128+' && $session->{fresh} ? $model->shown($session, 'seed') : '';
	$session->{fresh} = 0 if $source eq 'xorshift128+';
	return (\@errors, $seed);
}

sub check_seed
{
	my ($self, $id, $seed) = @_;
	return if !defined $seed || $seed eq '' || $id eq '';
	my $bits = $self->{has}{bits}{$seed};
	disagrees('seed', "$id does not end with $bits, of the seed $seed") if $id !~ /$bits$/;
	$self->{has}{tally}{'bits of the seed'}++;
	return;
}

1;

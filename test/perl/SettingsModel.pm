# A model of the settings: which value is in force, and what a call comes to under
# it, as doc/reference.md ("Settings", "Errors") and doc/security.md ("The allowlist",
# "Settings made before the library is loaded") say.
#
# A value is { text, from, by }: how it was written, where ('session', 'option', or a
# place of the DBA), and the role that did.

package SettingsModel;

use strict;
use warnings;

use Exporter qw(import);
use SessionModel;

our @EXPORT_OK = qw(%settings @sources);

our @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');

my %orderings = (map { $_ => $_ } 'session', 'instance', 'durable');

# Of each setting: its default; what is shown of each value that is tried, undef of
# a wrong one; whether a wrong one is kept outside of SET, for each call to refuse;
# whether it is a superuser's.
our %settings = (
	source => {
		default => 'openssl',
		keeps   => 1,
		shows   => { (map { $_ => $_ } @sources), 'GetRandom' => 'getrandom', 'typo' => undef } },
	allowed_sources => {
		default    => join(', ', @sources),
		keeps      => 1,
		privileged => 1,
		shows      => {
			(map { $_ => $_ } 'getrandom', 'OpenSSL,urandom', 'xorshift128+, getrandom', 'openssl, getrandom, urandom', ''),
			'getrandom, typo' => undef } },
	seed => {
		default    => '',
		keeps      => 1,
		privileged => 1,
		shows      => { (map { $_ => $_ } '42', '0x2a', '7', ''), 'typo' => undef } },
	ordering => { default => 'session', keeps => 1, shows => { %orderings, 'INSTANCE' => 'instance', 'typo' => undef } },
	required_ordering => { default => 'session', keeps => 1, privileged => 1, shows => { %orderings, 'typo' => undef } },
	buffer_size => {
		default => 4096,
		shows   => { '0' => 0, '8' => 8, '64' => 64, '4kB' => 4096, '64kB' => 65536, map { $_ => undef } 'typo', '65537', '-1' } },
	vdso           => { default => 'on', shows => { 'on' => 'on', 'off' => 'off', 'yes' => 'on', '0' => 'off', '2' => undef } },
	max_clock_lead => { default => -1, shows => { '-1' => -1, '0' => 0, '1s' => 1000, '-2' => undef, 'typo' => undef } });

# The superuser's name; whether the server has the library from its start, and shared
# memory for it; whether it knows durable order.
sub new
{
	my ($class, %server) = @_;
	return bless { %server, file => {}, dba => {} }, $class;
}

# A session of this user, with these connection options: name => text.
sub new_session
{
	my ($self, $user, %options) = @_;
	my %base;
	foreach my $place ('ROLE ALL', 'DATABASE postgres', "ROLE $user", "ROLE $user IN DATABASE postgres")
	{
		my $there = $self->{dba}{$place} // {};
		$base{$_} = { text => $there->{$_}, from => $place, by => $self->{superuser} } foreach keys %$there;
	}
	$base{$_} = { text => $options{$_}, from => 'option', by => $user } foreach keys %options;
	return { user => $user, base => \%base, state => SessionModel->new, loaded => $self->{preloaded} };
}

# Why a server that has the library refuses a connection: SQLSTATEs.
sub connection_errors
{
	my ($self, $user, %options) = @_;
	return if !$self->{preloaded};
	my @names = sort keys %options;
	return (
		(map { '42501' } grep { $settings{$_}{privileged} && !$self->may_set($user, $_) } @names),
		(map { '22023' } grep { !$settings{$_}{keeps}     && is_wrong($_, $options{$_}) } @names));
}

# By GRANT SET ON PARAMETER, or as a superuser.
sub may_set
{
	my ($self, $role, $name) = @_;
	return $role eq $self->{superuser} || $role eq 'trusted' && $settings{$name}{privileged};
}

sub role
{
	my ($self, $session) = @_;
	my $role = $session->{state}->setting('role');
	return $role ? $role->{text} : $session->{user};
}

sub is_wrong
{
	my ($name, $text) = @_;
	return !defined $settings{$name}{shows}{$text};
}

# What RESET leads to; undef: the default.
sub base
{
	my ($self, $session, $name) = @_;
	my $file = $self->{file}{$name};
	return $session->{base}{$name} // (defined $file ? { text => $file, from => 'file', by => $self->{superuser} } : undef);
}

sub in_force
{
	my ($self, $session, $name) = @_;
	return $session->{state}->setting($name) // $self->base($session, $name);
}

# As the server shows it, which knows no more than the text of what is not loaded yet.
sub shown
{
	my ($self, $session, $name) = @_;
	my $value = $self->in_force($session, $name);
	my $text  = $value ? $value->{text} : undef;
	return $text // '' if !$session->{loaded};
	return $settings{$name}{default} if !defined $text;
	return $settings{$name}{shows}{$text} // $text;
}

sub allowed
{
	my ($self, $session) = @_;
	my $list  = $self->shown($session, 'allowed_sources');
	my @names = map { lc } split / *, */, $list;
	return grep({ my $name = $_; !grep { $_ eq $name } @sources } @names) ? () : @names;
}

# A seed is taken from SET alone, and where it is a number.
sub seed_refused
{
	my ($self, $session) = @_;
	my $seed = $self->in_force($session, 'seed');
	return $seed && $seed->{text} ne '' && ($seed->{from} ne 'session' || is_wrong('seed', $seed->{text}));
}

# Errors of what a role writes into a setting (undef: RESET).  What is not loaded yet
# takes everything.
sub set_errors
{
	my ($self, $session, $role, $name, $text, $for_later) = @_;
	return if !$session->{loaded};
	my @errors;
	push @errors, '42501' if $settings{$name}{privileged} && !$self->may_set($role, $name);
	return @errors if !defined $text;
	return (@errors, '22023') if is_wrong($name, $text);
	if ($name eq 'source')
	{
		my $source = $settings{source}{shows}{$text};
		push @errors, '42501' if !$for_later && !grep { $_ eq $source } $self->allowed($session);
		push @errors, '0A000' if $source eq 'xorshift128+' && $self->seed_refused($session);
	}
	return @errors;
}

# ALTER ROLE and ALTER DATABASE SET, in this session: the server lets nobody without
# the privilege write what it does not know.
sub alter_errors
{
	my ($self, $session, $role, $name, $text) = @_;
	return $self->set_errors($session, $role, $name, $text, 1) if $session->{loaded};
	return $self->may_set($role, $name) ? () : '42501';
}

# Errors of loading the library in a session, or none.
sub load_errors
{
	my ($self, $session) = @_;
	return if $session->{loaded};
	my $state = $session->{state};
	my %errors;
	foreach my $name (keys %settings)
	{
		my $setting = $settings{$name};
		my @set     = grep { defined } $state->values_of($name);
		foreach my $value (@set, $self->base($session, $name) // ())
		{
			$errors{42501} = 1 if $setting->{privileged} && !$self->may_set($value->{by}, $name);
			$errors{22023} = 1 if !$setting->{keeps} && is_wrong($name, $value->{text});
		}
		$errors{55000} = 1 if !defined $state->setting($name) && (@set || $setting->{privileged} && $state->{touched}{$name});
	}
	return sort keys %errors;
}

# Errors of a call, whose source is this text or, if undefined, that of the setting;
# $ordered: in the order.  Of several any may be the one that is raised.
sub call_errors
{
	my ($self, $session, $text, $ordered) = @_;
	if (my @errors = $self->load_errors($session))
	{
		return @errors;
	}
	$session->{loaded} = 1;
	my @errors;
	my $source = $self->source_of($session, $text);
	push @errors, '22023' if !defined $source;
	push @errors, '42501' if defined $source && !grep { $_ eq $source } $self->allowed($session);
	push @errors, '0A000' if defined $source && $source eq 'xorshift128+' && $self->seed_refused($session);
	return @errors if !$ordered;

	my %wanted = map { $self->shown($session, $_) => 1 } 'ordering', 'required_ordering';
	push @errors, '22023' if $wanted{typo};
	push @errors, '0A000' if $wanted{durable} && !$self->{durable};
	push @errors, '55000' if ($wanted{instance} || $wanted{durable}) && !$self->{shared};
	return @errors;
}

# The source that a call asks; undef: there is none of that name.
sub source_of
{
	my ($self, $session, $text) = @_;
	return $settings{source}{shows}{ $text // $self->shown($session, 'source') };
}

# What, if it changes, wipes the bits that were fetched ahead.
sub signature
{
	my ($self, $session) = @_;
	return join '|', map { $self->shown($session, $_) } 'buffer_size', 'vdso', 'seed', 'allowed_sources';
}

1;

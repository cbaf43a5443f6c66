# A model of the settings: which value is in force, and what a call comes to under
# it, as doc/reference.md ("Settings", "Errors") and doc/security.md ("The allowlist")
# say.  A session has the library from its beginning: 016_chosen_source.pl has what is
# set before.
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
# a wrong one; whether it is a superuser's, and whether it protects others.
our %settings = (
	source => {
		default => 'openssl',
		shows   => { (map { $_ => $_ } @sources), 'GetRandom' => 'getrandom', 'typo' => undef } },
	allowed_sources => {
		default    => join(', ', @sources),
		privileged => 1,
		protects   => 1,
		shows      => {
			(map { $_ => $_ } 'getrandom', 'OpenSSL,urandom', 'xorshift128+, getrandom', 'openssl, getrandom, urandom', ''),
			'getrandom, typo' => undef } },
	seed => {
		default    => '',
		privileged => 1,
		shows      => { (map { $_ => $_ } '42', '0x2a', '7', ''), 'typo' => undef } },
	ordering => { default => 'session', shows => { %orderings, 'INSTANCE' => 'instance', 'typo' => undef } },
	required_ordering => { default => 'session', privileged => 1, protects => 1, shows => { %orderings, 'typo' => undef } },
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
	delete $base{seed};    # taken from SET alone
	return { user => $user, base => \%base, state => SessionModel->new };
}

# Why a server that has the library refuses a connection, or one that has not does
# not load it: SQLSTATEs.  Options are right values.
sub connection_errors
{
	my ($self, $user, %options) = @_;
	my @refused = grep { $settings{$_}{privileged} && !$self->may_set($user, $_) } sort keys %options;
	return map { '42501' } grep { $settings{$_}{protects} } @refused if !$self->{preloaded};
	return ((map { '42501' } @refused), ($options{seed} // '') ne '' && $self->may_set($user, 'seed') ? '22023' : ());
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
	my $file = $name eq 'seed' ? undef : $self->{file}{$name};
	return $session->{base}{$name} // (defined $file ? { text => $file, from => 'file', by => $self->{superuser} } : undef);
}

sub in_force
{
	my ($self, $session, $name) = @_;
	return $session->{state}->setting($name) // $self->base($session, $name);
}

# As the server shows it.
sub shown
{
	my ($self, $session, $name) = @_;
	my $value = $self->in_force($session, $name);
	my $text  = $value ? $value->{text} : undef;
	return $settings{$name}{default} if !defined $text;
	return $settings{$name}{shows}{$text} // $text;
}

sub allowed
{
	my ($self, $session) = @_;
	return map { lc } split / *, */, $self->shown($session, 'allowed_sources');
}

# Errors of what a role writes into a setting (undef: RESET).
sub set_errors
{
	my ($self, $role, $name, $text) = @_;
	return (
		($settings{$name}{privileged} && !$self->may_set($role, $name) ? '42501' : ()),
		(defined $text && is_wrong($name, $text) ? '22023' : ()));
}

# Errors of a call, whose source is this text or, if undefined, that of the setting;
# $ordered: in the order.  Of several any may be the one that is raised.
sub call_errors
{
	my ($self, $session, $text, $ordered) = @_;
	my @errors;
	my $source = $self->source_of($session, $text);
	push @errors, '22023' if !defined $source;
	push @errors, '42501' if defined $source && !grep { $_ eq $source } $self->allowed($session);
	return @errors if !$ordered;

	my %wanted = map { $self->shown($session, $_) => 1 } 'ordering', 'required_ordering';
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

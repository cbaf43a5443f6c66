# What a session's settings are under its transaction, and what else that holds
# (its cursors): as PostgreSQL's manual says of SET, SET LOCAL, RESET and
# savepoints.  A value is a text; undef is one that the session has not set.

package SessionModel;

use strict;
use warnings;

use RandomHistory;

sub new
{
	my ($class) = @_;
	return bless { status => 'idle', set => {}, levels => [], owned => {} }, $class;
}

# In force now, and after the transaction; undef: not set in this session.
sub setting
{
	my ($self, $name) = @_;
	return $self->{set}{$name} ? $self->{set}{$name}[0] : undef;
}

# SET and RESET (undef); LOCAL holds until the end of the transaction.
sub set
{
	my ($self, $name, $value, $local) = @_;
	return if $local && $self->{status} eq 'idle';
	my $after = $local && $self->{set}{$name} ? $self->{set}{$name}[1] : undef;
	$self->{set}{$name} = [ $value, $local ? $after : $value ];
	return;
}

# RESET ALL has an effect on what is set, but for the role.
sub reset_all
{
	my ($self) = @_;
	$self->set($_, undef) foreach grep { $_ ne 'role' && defined $self->setting($_) } keys %{ $self->{set} };
	return;
}

sub save
{
	my ($self) = @_;
	return { set => { map { $_ => [ @{ $self->{set}{$_} } ] } keys %{ $self->{set} } } };
}

sub restore
{
	my ($self, $saved) = @_;
	$self->{set} = $saved->{set};
	return;
}

# BEGIN, SAVEPOINT and so on, at random, with a name for those that take one; where the
# transaction has failed, its end in so many of a hundred cases.
sub choose_control
{
	my ($self, $random, $ends) = @_;
	return ('BEGIN', '') if $self->{status} eq 'idle' && chance($random, 90);
	return (one_of($random, 'ROLLBACK', 'COMMIT'), '') if $self->{status} eq 'failed' && chance($random, $ends);
	my @names = ('a', 'b', grep { $_ } map { $_->[0] } @{ $self->{levels} });
	return (one_of($random, ('SAVEPOINT', 'ROLLBACK TO') x 2, 'RELEASE', 'COMMIT', 'ROLLBACK', 'BEGIN'), one_of($random, @names));
}

sub begin
{
	my ($self) = @_;
	$self->{status} = 'open';
	$self->{levels} = [ [ '', $self->save ] ];
	return;
}

sub savepoint
{
	my ($self, $name) = @_;
	push @{ $self->{levels} }, [ $name, $self->save ];
	return;
}

# The level of the latest savepoint of that name; undef: there is none.
sub level
{
	my ($self, $name) = @_;
	my $levels = $self->{levels};
	my ($level) = grep { $levels->[$_][0] eq $name } reverse 1 .. $#$levels;
	return $level;
}

sub rollback_to
{
	my ($self, $name) = @_;
	my $level = $self->level($name);
	$#{ $self->{levels} } = $level;
	$self->restore($self->{levels}[$level][1]);
	$self->{levels}[$level] = [ $name, $self->save ];
	$self->{status} = 'open';
	$self->disown($level);
	return;
}

sub release
{
	my ($self, $name) = @_;
	my $level = $self->level($name);
	$#{ $self->{levels} } = $level - 1;
	$_->{level} = $level - 1 foreach grep { $_->{level} >= $level } values %{ $self->{owned} };
	return;
}

sub end
{
	my ($self, $commit) = @_;
	if ($commit && $self->{status} eq 'open')
	{
		$_->[0] = $_->[1] foreach values %{ $self->{set} };
	}
	else
	{
		$self->restore($self->{levels}[0][1]);
	}
	@$self{qw(status levels)} = ('idle', []);
	$self->disown(0);
	return;
}

# A statement has failed.
sub fail
{
	my ($self) = @_;
	$self->{status} = 'failed' if $self->{status} ne 'idle';
	return;
}

# What a subtransaction, or a function, does between its beginning and its end.
sub within
{
	my ($self, $do) = @_;
	my ($before, $status, @levels) = ($self->save, $self->{status}, @{ $self->{levels} });
	$status eq 'idle' ? $self->begin : $self->savepoint('');
	my @result = $do->();
	$self->restore($before);
	@$self{qw(status levels)} = ($status, \@levels);
	return @result;
}

# What ends with the transaction, or with the savepoint that it was made under.
sub own
{
	my ($self, $name, $object) = @_;
	$object->{level} = $#{ $self->{levels} };
	return $self->{owned}{$name} = $object;
}

sub disown
{
	my ($self, $level) = @_;
	my $owned = $self->{owned};
	delete @{$owned}{ grep { $owned->{$_}{level} >= $level } keys %$owned };
	return;
}

# The error of a statement about the transaction alone, before anything else of it;
# '': none.
sub refuses
{
	my ($self, $verb, $name) = @_;
	return '25P02' if $self->{status} eq 'failed' && $verb !~ /^(COMMIT|ROLLBACK|ROLLBACK TO)$/;
	return '25P01' if $self->{status} eq 'idle' && $verb =~ /^(SAVEPOINT|RELEASE|ROLLBACK TO|DECLARE)$/;
	return '3B001' if $verb =~ /^(RELEASE|ROLLBACK TO)$/ && !defined $self->level($name);
	return '';
}

# Carry out a statement about the transaction.
sub control
{
	my ($self, $verb, $name) = @_;
	$self->begin if $verb eq 'BEGIN' && $self->{status} eq 'idle';
	$self->savepoint($name) if $verb eq 'SAVEPOINT';
	$self->rollback_to($name) if $verb eq 'ROLLBACK TO';
	$self->release($name) if $verb eq 'RELEASE';
	$self->end($verb eq 'COMMIT') if $verb =~ /^(COMMIT|ROLLBACK)$/ && $self->{status} ne 'idle';
	return;
}

1;

# Every state of a model that some steps lead to, the nearest first.  A state is a
# string of bytes, one for each variable.

package StateSearch;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

our @EXPORT = qw(@v new_model add_variables add_actor becomes breaks search check_model);

# The variables of the state at hand.
our @v;

# That state, and those that follow it; what the last of these breaks, or itself.
my ($state, @next, $violation);

# The first state, and the actors, each with where its variables are; the names of
# variables, and of their values where they have some.
my (@first, @actors, @names, @value_names);

sub new_model
{
	@first = @actors = @names = @value_names = ();
	return;
}

# add_variables(\@names, VALUE...): where they are.  What has no value begins with 0.
sub add_variables
{
	my ($names, @values) = @_;
	my $at = @first;
	push @names, @$names;
	push @first, @values, (0) x (@$names - @values);
	return $at;
}

# add_actor(NAME, \@names of its steps, \&steps, \@names, VALUE...): where its program
# counter is, which its other variables follow, and with which its steps are called.
sub add_actor
{
	my ($name, $step_names, $steps, $names, @values) = @_;
	my $at = add_variables([ $name, map { "$name: $_" } @$names ], 0, @values);
	$value_names[$at] = $step_names;
	push @actors, [ $steps, $at ];
	return $at;
}

# becomes(WHERE, VALUE, ...): a next state is this one with other values of these
# variables.
sub becomes
{
	return if defined $violation;
	my $next = $state;
	for (my $i = 0; $i < @_; $i += 2)
	{
		substr $next, $_[$i], 1, chr $_[ $i + 1 ];
	}
	push @next, $next;
	return;
}

# Words about the latest of the next states, or about this one, if none follows it.
sub breaks
{
	my ($words) = @_;
	$violation //= $words;
	return;
}

# What has changed on the way to a state, one line a step.
sub trace
{
	my ($parent, $to) = @_;
	my @lines;
	while (defined(my $from = $parent->{$to}))
	{
		my @before = unpack 'C*', $from;
		my @after = unpack 'C*', $to;
		my @changed = grep { $before[$_] != $after[$_] } 0 .. $#after;
		my $value = sub { $value_names[ $_[0] ] ? "\"$value_names[$_[0]][$_[1]]\"" : $_[1] };
		unshift @lines,
		  join(', ', map { "$names[$_] " . $value->($_, $before[$_]) . ' -> ' . $value->($_, $after[$_]) } @changed);
		$to = $from;
	}
	return @lines;
}

sub look_at
{
	($state) = @_;
	@v = unpack 'C*', $state;
	@next = ();
	foreach my $actor (@actors)
	{
		$actor->[0]->($actor->[1]);
		last if defined $violation;
	}
	return;
}

# search(\&check_end): how many states there are.  Where none follows, check_end() is
# called.  What breaks something ends the search; it tells that, and a shortest way there.
sub search
{
	my ($check_end) = @_;
	my @states = (pack 'C*', @first);
	my %parent = ($states[0] => undef);

	undef $violation;
	while (@states)
	{
		my @found;
		foreach my $from (@states)
		{
			look_at($from);
			$check_end->() unless @next;
			foreach my $next (@next)
			{
				next if exists $parent{$next};
				$parent{$next} = $from;
				push @found, $next;
			}
			next unless defined $violation;

			# This step need not have been the first that led there.
			$parent{ $next[-1] } = $from if @next;
			return {
				states => scalar keys %parent,
				violation => $violation,
				trace => [ trace(\%parent, @next ? $next[-1] : $from) ] };
		}
		@states = @found;
	}
	return { states => scalar keys %parent };
}

# A test of a model: the promise holds in each configuration, by its name, and each
# mutation [WHAT, NAME OF A CONFIGURATION, WHAT CHANGES...] breaks it.
sub check_model
{
	my ($explore, $configurations, @mutations) = @_;
	foreach my $name (sort keys %$configurations)
	{
		my $found = $explore->($configurations->{$name});
		ok(!defined $found->{violation}, "$name: the promise holds in all of $found->{states} states")
		  or diag(join "\n", $found->{violation}, @{ $found->{trace} });
	}
	foreach my $mutation (@mutations)
	{
		my ($what, $where, @changed) = @$mutation;
		my $found = $explore->($configurations->{$where}, @changed);
		ok(defined $found->{violation}, "noticed: $what ($where)");
		note(join "\n", $found->{violation}, @{ $found->{trace} }) if defined $found->{violation};
	}
	return;
}

1;

# Every state that some steps lead to, the nearest first.  A state is a string of
# bytes, one for each variable.

package StateSearch;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(search);

# What has changed on the way to a state, one line a step.
sub trace
{
	my ($parent, $names, $step_names, $to) = @_;
	my @lines;
	while (defined(my $from = $parent->{$to}))
	{
		my @before = unpack 'C*', $from;
		my @after = unpack 'C*', $to;
		my @changed = grep { $before[$_] != $after[$_] } 0 .. $#after;
		my $value = sub { $step_names->[ $_[0] ] ? "\"$step_names->[$_[0]][$_[1]]\"" : $_[1] };
		unshift @lines,
		  join(', ', map { "$names->[$_] " . $value->($_, $before[$_]) . ' -> ' . $value->($_, $after[$_]) } @changed);
		$to = $from;
	}
	return @lines;
}

# search(FIRST, STEPS, NAMES, NAMES OF VALUES): how many states there are.  STEPS is
# called with each and returns the states that follow it, after what they break: undef,
# or words about the last of them, or of itself if there is none.  With these the
# search ends, and tells a shortest way there, by the variables' names and the names of
# their values, where they have some.
sub search
{
	my ($first, $steps, $names, $step_names) = @_;
	my %parent = ($first => undef);
	my @states = ($first);

	while (@states)
	{
		my @found;
		foreach my $state (@states)
		{
			my ($violation, @next) = $steps->($state);
			foreach my $next (@next)
			{
				next if exists $parent{$next};
				$parent{$next} = $state;
				push @found, $next;
			}
			next unless defined $violation;

			# This step need not have been the first that led there.
			$parent{ $next[-1] } = $state if @next;
			return {
				states => scalar keys %parent,
				violation => $violation,
				trace => [ trace(\%parent, $names, $step_names, @next ? $next[-1] : $state) ] };
		}
		@states = @found;
	}
	return { states => scalar keys %parent };
}

1;

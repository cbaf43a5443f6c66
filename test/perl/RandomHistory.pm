# Random commands in a world that a model follows, until the world does what the
# model does not allow; then the shortest part of the commands that still shows it.
#
#   FAST_UUID_SEED=n    other commands than those of every day; "random": a seed of
#                       this moment, which is printed
#   FAST_UUID_STEPS=n   how many commands
#
# A world has choose(RANDOM), which returns a command, a reference to an array;
# perform(COMMAND), which calls differs() or disagrees() where the model is not met;
# close(); and {log}, lines that tell what was done.  Each command must make sense in
# every state of the world, so that any part of a history is a history.

package RandomHistory;

use strict;
use warnings;

use Config;
use Exporter qw(import);
use List::Util qw(max min);
use Test::More;

# After so many kinds of difference there is enough to read.
my $most_kinds = 8;

our @EXPORT = qw(differs disagrees explore replay one_of chance seed_and_steps);

# The kinds of difference that were told already.
my %told;

# Stop here: the kind of a difference, by which it is known again ("of what: where"),
# and what it is.
sub differs
{
	my ($kind, $what) = @_;
	die { kind => $kind, what => $what };
}

# The same, but go on where such a difference was told already: the model can take
# what it has seen for the truth.
sub disagrees
{
	my ($kind, $what) = @_;
	differs($kind, $what) unless $told{ $kind =~ s/:.*//r };
	return;
}

# A generator of its own, the same in every Perl; nobody else draws from it.
sub random_from
{
	my ($seed) = @_;
	my $state = $seed;
	my $next  = sub {
		use integer;
		$state = $state * 6364136223846793005 + 1442695040888963407;
		return $state >> 33 & 0x3FFFFFFF;
	};
	$next->() foreach 1 .. 4;
	return sub { return $next->() % $_[0] };
}

sub one_of
{
	my ($random, @choices) = @_;
	return $choices[ $random->(scalar @choices) ];
}

# True in so many of a hundred cases.
sub chance
{
	my ($random, $percent) = @_;
	return $random->(100) < $percent;
}

# Those of the environment, or another seed each time, and so many steps.
sub seed_and_steps
{
	my ($steps) = @_;
	plan skip_all => 'needs a Perl of 64 bits' if $Config{ivsize} < 8;
	my $seed = $ENV{FAST_UUID_SEED} // 20261121;
	return ($seed eq 'random' ? (time ^ $$ << 12) & 0x7FFFFFFF : $seed, $ENV{FAST_UUID_STEPS} // $steps);
}

# Perform commands, which are chosen if none are given, in a world of their own.
# Returns the difference, or undef; the world, and the commands.
sub history
{
	my ($new_world, $random, $steps, @given) = @_;
	my @done;
	my $world = $new_world->();
	my $difference;
	eval {
		while (@done < $steps)
		{
			push @done, @given ? $given[ scalar @done ] : $world->choose($random);
			$world->perform($done[-1]);
		}
		1;
	} or $difference = $@;
	$world->close;
	die $difference if defined $difference && !ref $difference;
	return ($difference, $world, @done);
}

# Is this history, which once showed a difference, as the model has it?
sub replay
{
	my ($new_world, @commands) = @_;
	%told = ();
	my ($difference, $world) = history($new_world, undef, scalar @commands, @commands);
	diag(map { "  $_\n" } @{ $world->{log} }, $difference->{what}) if $difference;
	return !$difference;
}

# The shortest part of a history that shows the same kind of difference: parts are
# left out, first long ones, as long as it still does.
sub shorten
{
	my ($new_world, $difference, $world, @commands) = @_;
	my $length = max(1, int(@commands / 2));
	my $tries  = 0;
	while ($length >= 1)
	{
		my $shorter = 0;
		for (my $at = @commands - $length; $at > -$length && $tries < 400; $at -= $length)
		{
			my @rest = @commands;
			splice @rest, max(0, $at), $at < 0 ? $length + $at : $length;
			next unless @rest;
			my ($found, $tried, @done) = history($new_world, undef, scalar @rest, @rest);
			$tries++;
			next unless $found && $found->{kind} eq $difference->{kind};
			($difference, $world, @commands) = ($found, $tried, @done);
			$shorter = 1;
		}
		last if $tries >= 400;
		$length = $shorter && $length == 1 ? 1 : int($length / 2);
	}
	return ($difference, $world, @commands);
}

# So many steps in rounds of so many, each with a world of its own.  Of each kind of
# difference the first is told; then it does not stand in the way of others.  Returns
# whether there was none.
sub explore
{
	my ($new_world, $seed, $steps, $round) = @_;
	my ($done, $rounds) = (0, 0);
	%told = ();
	while ($done < $steps && keys %told < $most_kinds)
	{
		my $random = random_from($seed * 1_000_003 + $rounds);
		my ($difference, $world, @commands) = history($new_world, $random, min($round, $steps - $done));
		$done += @commands;
		$rounds++;
		next unless $difference;
		my ($kind) = split /:/, $difference->{kind};
		next if $told{$kind};

		diag("FAST_UUID_SEED=$seed, after $done steps: $difference->{what}");
		my @short;
		($difference, $world, @short) = shorten($new_world, $difference, $world, @commands);
		diag("$kind; the shortest history found, of " . @short . ' steps:');
		diag("  $_") foreach @{ $world->{log} };
		diag("  $difference->{what}");
		$told{$kind} = 1;
	}
	note("$done steps in $rounds rounds");
	return !%told;
}

1;

# Several sessions, on one server or more, that do their work at the same time.

package Simultaneous;

use strict;
use warnings;

use Exporter qw(import);
use RawSession;

our @EXPORT = qw(run_simultaneously);

# run_simultaneously([ $node, STATEMENT... ]...): all are connected before the first one is
# given its statements.  Returns their errors, one a line.
sub run_simultaneously
{
	my @sessions = map { RawSession->start($_->[0]) } @_;
	foreach my $n (0 .. $#sessions)
	{
		my (undef, @statements) = @{ $_[$n] };
		$sessions[$n]->send(join '; ', @statements);
	}
	my @errors;
	foreach my $session (@sessions)
	{
		$session->receive;
		push @errors, $session->{error} if $session->{error} ne '';
		$session->quit;
	}
	return join "\n", @errors;
}

1;

# Several psql sessions, on one server or more, that begin their work together.

package Together;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(run_together);

# run_together([ $node, STATEMENT... ]...): all sessions wait before a lock that
# is released once they are there.  Returns what went wrong, one line a session
# that failed.
sub run_together
{
	my @work = @_;
	my %nodes = map { $_->[0]->name => $_->[0] } @work;
	my (%gates, @sessions, @errors);

	foreach my $name (keys %nodes)
	{
		$gates{$name} = $nodes{$name}->background_psql('postgres');
		$gates{$name}->query_safe('SELECT pg_advisory_lock(1)');
	}
	foreach my $work (@work)
	{
		my ($node, @statements) = @$work;
		my $session = { node => $node->name, output => '' };
		$session->{psql} = IPC::Run::start(
			[
				'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
				map { ('-c', $_) } 'SELECT pg_advisory_lock_shared(1)', @statements
			],
			'<', '/dev/null', '>&', \$session->{output},
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
		push @sessions, $session;
	}
	foreach my $name (keys %nodes)
	{
		my $count = grep { $_->{node} eq $name } @sessions;
		$nodes{$name}->poll_query_until('postgres',
			"SELECT count(*) = $count FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted")
		  or BAIL_OUT("the sessions of $name do not start");
	}
	$_->query_safe('SELECT pg_advisory_unlock(1)') foreach values %gates;
	foreach my $session (@sessions)
	{
		IPC::Run::finish($session->{psql}) or push @errors, "$session->{node}: $session->{output}";
	}
	$_->quit foreach values %gates;
	return join "\n", @errors;
}

1;

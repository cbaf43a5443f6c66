# Sessions of a test, each in a process of its own or not.

package Sessions;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(_exit);
use PostgreSQL::Test::Utils;
use RawSession;
use Time::HiRes qw(usleep);

our @EXPORT = qw(connect_to run_in wait_for pause in_background $server_down);

sub connect_to
{
	my ($node, $name, $database) = @_;
	my $session = RawSession->connect($node,
		database => $database // 'postgres', application_name => $name);
	die "$session->{error}\n" if $session->{error} ne '';
	return $session;
}

# Raises the server's error, if any, or "closed".
sub run_in
{
	my ($session, $sql) = @_;
	my $rows = $session->query($sql);
	die "$session->{error}\n" if $session->{error} ne '';
	die "closed\n" if $session->{closed};
	return $rows;
}

# What these raise where their server has been killed.
our $server_down = qr/^(?:closed|57P0[123]|could not connect)/;

# Wait until a query returns true.
sub wait_for
{
	my ($node, $query) = @_;
	return $node->poll_query_until('postgres', $query) || die "waited in vain: $query";
}

sub pause
{
	return usleep(1000 * rand($_[0]));
}

# In a process of its own, with random numbers of its own, whose complaint ends up in a
# file; returns what waits for it, and returns the complaint, if any.
sub in_background
{
	my ($name, $work) = @_;
	our $files //= PostgreSQL::Test::Utils::tempdir();
	my $complaint = "$files/" . ++our $processes;
	my $seed = int rand 2**32;
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		# Not to be caught by what the test's modules do at the end.
		local $SIG{PIPE} = 'IGNORE';
		srand($seed);
		append_to_file($complaint, "$name: $@") unless eval { $work->(); 1 };
		_exit(0);
	}
	return sub {
		waitpid($pid, 0);
		return slurp_file($complaint) if -e $complaint;
		return $? ? "$name: status $?" : ();
	};
}

1;

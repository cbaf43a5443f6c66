# What must end soon; statements that are cancelled while they are at work.  The watchdog is
# far below the suite's own, so that an answer which comes in a minute, or when the connection
# breaks, is none; and far above what it takes, so that it measures nothing.

package Watchdog;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(wait_until wait_until_up within at_work cancel check_cancel check_alive);

my $seconds = 20;

# What a sub returns; where it does not end, the test does.
sub within
{
	my ($node, $name, $work) = @_;
	my @result;
	local $SIG{ALRM} = sub { die "watchdog\n" };
	alarm $seconds;
	my $ended = eval { @result = $work->(); 1 };
	alarm 0;
	return wantarray ? @result : $result[0] if $ended;
	die $@ if $@ ne "watchdog\n";
	fail("$name: within $seconds seconds");
	$node->stop('immediate');
	done_testing();
	exit 1;
}

# Wait until there is something, and return it.
sub wait_until
{
	my ($what, $condition) = @_;
	foreach (1 .. 1000 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $value = $condition->();
		return $value if $value;
		usleep(1000);
	}
	die "waited in vain: $what\n";
}

# Wait until a server accepts connections.  Not by psql, as poll_query_until() does: one
# that cannot connect may end before its query is written to it, which ends the test.
sub wait_until_up
{
	my ($node) = @_;
	my @is_ready = ('pg_isready', '-q', '-h', $node->host, '-p', $node->port);
	return wait_until('the server accepts connections', sub { IPC::Run::run(\@is_ready) });
}

# What a process has done: the processor's time in ticks, and how often it gave way.
sub done_by
{
	my ($pid) = @_;
	my $stat = slurp_file("/proc/$pid/stat") =~ s/.*\) //sr;
	my ($utime, $stime) = (split ' ', $stat)[ 11, 12 ];
	my ($waits) = slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	return ($utime + $stime, $waits);
}

# Wait until a process has done something since now.
sub at_work
{
	my ($pid) = @_;
	my ($ticks_before, $waits_before) = done_by($pid);
	return wait_until('the session is at work', sub {
		my ($ticks, $waits) = done_by($pid);
		return $ticks >= $ticks_before + 5 || $waits >= $waits_before + 100;
	});
}

# The session is the one that it was, and generates.
sub check_alive
{
	my ($session, $pid, $name) = @_;
	$session->query('ROLLBACK');
	is($session->query('SELECT pg_backend_pid()'), $pid, "$name: the session is still there");
	return like($session->query('SELECT uuidv7_fast()'), qr/^\S{36}$/, "$name: and generates");
}

# Cancel what a session does, which ends that.
sub cancel
{
	my ($node, $name, $session, $pid) = @_;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	within($node, "$name: the cancel is answered", sub { $session->receive });
	return is(substr($session->{error}, 0, 5), '57014', "$name: the cancel is answered");
}

# Cancel a statement once it is at work; the session goes on.
sub check_cancel
{
	my ($node, $name, $session, $statement) = @_;
	my $pid = $session->query('ROLLBACK; SELECT pg_backend_pid()');
	$session->send($statement);
	at_work($pid);
	ok(!$session->has_answer, "$name: it is at work");
	cancel($node, $name, $session, $pid);
	return check_alive($session, $pid, $name);
}

1;

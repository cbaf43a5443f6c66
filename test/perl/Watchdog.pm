# Statements that are cancelled while they are at work, and what must end soon.  The
# watchdog is far below the suite's own, so that an answer which comes in a minute,
# or when the connection breaks, is none; and far above what it takes, so that it
# measures nothing.

package Watchdog;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run;
use PostgreSQL::Test::Utils;
use RawSession;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(wait_until wait_until_up within at_work cancel check_cancel check_alive);

my $seconds = 20;

# What a sub returns; where it does not end, the test does.
sub within
{
	my ($node, $name, $work) = @_;
	my @result;
	my $ended = eval {
		local $SIG{ALRM} = sub { die "watchdog\n" };
		alarm $seconds;
		@result = $work->();
		alarm 0;
		1;
	};
	alarm 0;
	return wantarray ? @result : $result[0] if $ended;
	die $@ unless $@ eq "watchdog\n";
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
	return wait_until('the server accepts connections', sub { IPC::Run::run([ 'pg_isready', '-q', '-h', $node->host, '-p', $node->port ]) });
}

# What a process has done: the processor's time in ticks, and how often it gave way.
sub done_by
{
	my ($pid) = @_;
	my $stat = eval { slurp_file("/proc/$pid/stat") } // '';
	my ($utime, $stime) = (split ' ', $stat =~ s/.*\) //sr)[ 11, 12 ];
	my ($waits) = (eval { slurp_file("/proc/$pid/status") } // '') =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
	return (($utime // 0) + ($stime // 0), $waits // 0);
}

# Wait until these processes have done something since now.
sub at_work
{
	my (@pids) = @_;
	my %before = map { $_ => [ done_by($_) ] } @pids;
	foreach my $pid (@pids)
	{
		foreach (1 .. 100 * $seconds)
		{
			my ($ticks, $waits) = done_by($pid);
			last if $ticks >= $before{$pid}[0] + 5 || $waits >= $before{$pid}[1] + 100;
			usleep(10_000);
		}
	}
	return;
}

# The session is the one that it was, and generates.
sub check_alive
{
	my ($session, $pid, $name) = @_;
	$session->query('ROLLBACK');
	is($session->query('SELECT pg_backend_pid()'), $pid, "$name: the session is still there");
	like($session->outcome('SELECT uuidv7_fast()'), qr/^value [0-9a-f-]{36}$/, "$name: and generates");
	return;
}

# Cancel what a session does, which ends that.
sub cancel
{
	my ($node, $name, $session, $pid) = @_;
	is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)"), 't', "$name: a cancel is sent");
	within($node, "$name: the cancel is answered", sub { $session->receive });
	is(substr($session->{error}, 0, 5), '57014', "$name: the cancel is answered");
	return;
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
	check_alive($session, $pid, $name);
	return;
}

1;

# Tests in which many processes write and read at once, each in its own session.

package FeedWriters;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(_exit);
use PostgreSQL::Test::Utils;
use RawSession;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(connect_to run_in pause in_background follow passes last_seen commit_late verdict_on);

sub connect_to
{
	my ($node, $name) = @_;
	my $session = RawSession->connect($node, user => scalar(getpwuid $>), database => 'postgres', application_name => $name);
	die "$name: $session->{error}\n" if $session->{error} ne '';
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

sub pause
{
	my ($ms) = @_;
	usleep(1000 * rand($ms));
	return;
}

# In a process of its own, with random numbers of its own, whose complaint ends up in a
# file; returns what waits for it, and returns the complaint, if any.
sub in_background
{
	my ($name, $work) = @_;
	my $complaint = PostgreSQL::Test::Utils::tempdir() . '/complaint';
	my $pid = fork // BAIL_OUT("could not fork: $!");
	if ($pid == 0)
	{
		# Not to be caught by what the test's modules do at the end.
		local $SIG{PIPE} = 'IGNORE';
		srand;
		append_to_file($complaint, "$name: $@") unless eval { $work->(); 1 };
		_exit(0);
	}
	return sub { waitpid($pid, 0); return -e $complaint ? slurp_file($complaint) : $? ? "$name: status $?" : () };
}

# A reader in a process of its own.  What it is given after the last id that it has seen
# goes into a file, with an empty line behind each pass that saw rows; it passes once more
# when $stop is there.
sub follow
{
	my ($node, $name, $file, $stop, $read) = @_;
	my $session = connect_to($node, $name);
	return in_background($name, sub {
		my $last = '00000000-0000-0000-0000-000000000000';
		my $stopped;
		do
		{
			$stopped = -e $stop;
			my $rows = $read->($session, $last);
			append_to_file($file, "$rows\n\n") if $rows ne '';
			$last = $1 if $rows =~ /(.+)\z/;
			pause(10);
		} until $stopped;
		$session->quit;
	});
}

sub passes
{
	my ($file) = @_;
	my @passes = -e $file ? split /\n\n/, slurp_file($file) : ();
	return @passes;
}

sub last_seen
{
	return ((passes(@_))[-1] // '') =~ /(.+)\z/ ? $1 : '';
}

# Commit a statement when a reader has seen the row of one that came after it, which
# returns its position.
sub commit_late
{
	my ($node, $file, $late, $after) = @_;
	my $session = connect_to($node, 'late');
	run_in($session, 'BEGIN');
	run_in($session, $late);
	my $position = run_in(connect_to($node, 'after'), $after);
	foreach (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last if join('', passes($file)) =~ /$position/;
		pause(20);
	}
	return run_in($session, 'COMMIT');
}

# Of what a reader has seen, in its order, against all that was committed, as keys: the
# rows that it has missed; those that it saw twice, or that never were there; and those
# that came after a greater one.
sub verdict_on
{
	my ($committed, @seen) = @_;
	my %seen   = map { $_ => 1 } @seen;
	my $missed = grep { !$seen{$_} } keys %$committed;
	my $known  = grep { $committed->{$_} } keys %seen;
	my $back   = grep { $seen[$_] le $seen[ $_ - 1 ] } 1 .. $#seen;
	return ($missed, @seen - $known, $back);
}

1;

# Tests in which many processes write and read at once, each in its own session.

package FeedWriters;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(_exit);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RawSession;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(new_feed_node start_feed guard connect_to run_in pause in_background follow passes last_seen
  commit_late finish_prepared check_readers);

# A server with these settings that can have feeds, for which those before PostgreSQL 17
# preload the library; not started.
sub new_feed_node
{
	my ($name, $settings, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%init);
	$settings .= "\nshared_preload_libraries = 'fast_uuid'" if $node->pg_version < 17;
	$node->append_conf('postgresql.conf', $settings);
	return $node;
}

# The same, started, with the extension.
sub start_feed
{
	my $node = new_feed_node(@_);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	return $node;
}

# The guard of a table.
sub guard
{
	my ($table, $column) = (@_, 'id');
	return "CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('$column')";
}

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

# Commit or roll back a prepared transaction: this one, or else the oldest, if there is one.
sub finish_prepared
{
	my ($session, $gid) = @_;
	$gid //= run_in($session, 'SELECT gid FROM pg_prepared_xacts ORDER BY prepared LIMIT 1');
	run_in($session, (rand() < 0.7 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'") if $gid ne '';
	return;
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

# check_readers(\%committed, DIRECTORY of their files, NAME => HOW MANY...): against all that was
# committed, as keys, each has seen no row twice, and all in ascending order; and has missed
# none, or at least so many.
sub check_readers
{
	my ($committed, $directory, %least) = @_;
	foreach my $name (sort keys %least)
	{
		my @seen = map { split /\n/ } passes("$directory/$name");
		my %seen = map { $_ => 1 } @seen;
		my $missed = grep { !$seen{$_} } keys %$committed;
		my $known = grep { $committed->{$_} } keys %seen;
		note "$name: $missed of " . keys(%$committed) . ' rows missed';
		is(@seen - $known, 0, "$name: no row twice, and none that was not committed");
		is(scalar(grep { $seen[$_] le $seen[ $_ - 1 ] } 1 .. $#seen), 0, "$name: in ascending order");
		$least{$name}
		  ? cmp_ok($missed, '>=', $least{$name}, "$name: rows are missed")
		  : is($missed, 0, "$name: no row is missed");
	}
	return;
}

1;

# Loads on feeds: processes that write in transactions which end late and in every way, and
# readers in others, each with a session of its own.  At the end what each reader has seen is
# compared with what was committed.

package FeedWriters;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RandomSeed;
use Sessions;
use Test::More;
use Watchdog;

our @EXPORT = (qw(new_feed_node in_savepoints write_transaction finish_prepared), @Sessions::EXPORT);

# Where it has died, the processes that it has started end.
my $test = $$;

# A server with these settings that can have feeds, for which those before PostgreSQL 17
# preload the library; not started.
sub new_feed_node
{
	my ($name, $settings, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%init);
	$settings .= "\nshared_preload_libraries = 'fast_feed'" if $node->pg_version < 17;
	$node->append_conf('postgresql.conf', $settings);
	return $node;
}

# A statement, rolled back and not.
sub in_savepoints
{
	my ($sql) = @_;
	return "SAVEPOINT a; $sql; ROLLBACK TO a; $sql; SAVEPOINT b; $sql; RELEASE b";
}

# A transaction of some of these statements, which takes its time and ends in any way; or
# commit or roll back one that was prepared.
sub write_transaction
{
	my ($session, $gid, @statements) = @_;
	return finish_prepared($session) if rand() < 0.1;

	run_in($session, 'BEGIN');
	foreach (0 .. rand 3)
	{
		run_in($session, $statements[ rand @statements ]);
		pause(10);
	}
	pause(30);
	my $end = rand;
	return run_in($session, 'COMMIT') if $end < 0.75;
	return run_in($session, 'ROLLBACK') if $end < 0.85;
	run_in($session, "PREPARE TRANSACTION '$gid'");
	return if $end < 0.93;
	pause(20);
	return finish_prepared($session);
}

# Commit or roll back the oldest prepared transaction, unless there is none, or another
# session is about to.
sub finish_prepared
{
	my ($session, $end) = @_;
	$end //= rand() < 0.7 ? 'COMMIT' : 'ROLLBACK';
	my $gid = run_in($session, 'SELECT gid FROM pg_prepared_xacts ORDER BY prepared LIMIT 1');
	return if $gid eq '';
	eval { run_in($session, "$end PREPARED '$gid'"); 1 }
	  or $@ =~ /^(?:42704|55000) prepared transaction/ or die $@;
	return;
}

# A load, whose random choices are printed.
sub new_load
{
	my $directory = PostgreSQL::Test::Utils::tempdir();
	our $seed //= seed_random();
	return bless { directory => $directory, writers => [], readers => [] }, 'FeedWriters';
}

sub file
{
	my ($self, $name) = @_;
	return "$self->{directory}/$name";
}

# $load->writer(NAME, NODE, WORK): repeats the work, which gets a session and a number, until
# end_writers().  NODE may be a sub.  What the work may raise is in "survives"; then it is
# rolled back.
sub writer
{
	my ($self, $name, $node, $work, %options) = @_;
	push @{ $self->{writers} }, in_background($name, sub {
		my $session;
		for (my $number = 1; !-e $self->file('enough') && getppid() == $test; $number++)
		{
			my $on = ref $node eq 'CODE' ? $node->() : $node;
			next if eval {
				$session = connect_to($on, $name, $options{database})
				  if !$session || $session->{closed};
				$work->($session, $number);
				1;
			};
			die $@ unless $options{survives} && $@ =~ $options{survives};
			pause(20);

			# That can be cancelled, too.
			1 while $session && $session->outcome('ROLLBACK') eq '57014';
		}
	});
	return;
}

# $load->reader(NAME, NODE, READ): a reader that remembers its position, the first word of
# the last row.  It reads by a statement, in which that is $1, or by a sub, which gets a
# session and that.  From where it begins is in "from".
sub reader
{
	my ($self, $name, $node, $read, %options) = @_;
	my $last = $options{from} // '00000000-0000-0000-0000-000000000000';
	push @{ $self->{readers} }, in_background("reader $name", sub {
		my $session = connect_to($node, "reader $name", $options{database});
		my $without_rows = 0;

		# When it is told to stop, until twice there are no rows: a watermark can be that of
		# an earlier call.
		while ($without_rows < 2 && getppid() == $test)
		{
			my $stopped = -e $self->file('stop');
			my $rows = eval {
				ref $read ? $read->($session, $last)
				  : run_in($session, $read =~ s/\$1/'$last'/gr);
			};
			next if !defined $rows && $options{survives} && $@ =~ $options{survives};
			die $@ unless defined $rows;
			$without_rows = $stopped && $rows eq '' ? $without_rows + 1 : 0;
			$last = $1 if $rows =~ /^(\S+).*\z/m;

			# An empty line ends a pass.
			append_to_file($self->file($name), "$rows\n\n") if $rows ne '';
			pause(10);
		}
	});
	return;
}

sub seen
{
	my ($self, $name) = @_;
	return -e $self->file($name) ? slurp_file($self->file($name)) : '';
}

sub last_seen
{
	my ($self, $name) = @_;
	my $seen = $self->seen($name);

	# The end is enough, of what can be a million rows.
	$seen = substr($seen, -1000) if length $seen > 1000;
	return $seen =~ /^(\S+).*\n\n\z/m ? $1 : '';
}

# Wait until a reader has been given rows so often.
sub wait_for_passes
{
	my ($self, $name, $count) = @_;
	$count += () = $self->seen($name) =~ /\n\n/g;
	return wait_until("the reader $name", sub { $count <= (() = $self->seen($name) =~ /\n\n/g) });
}

# Wait until a reader has seen the row of a position, or one beyond it.
sub wait_for_reader
{
	my ($self, $name, $position) = @_;
	return wait_until("the reader $name", sub { $self->last_seen($name) ge $position });
}

# Commit one statement when these readers have seen the row of another that came after it,
# or one beyond it.  Both statements return what they remember.  Readers without the watermark
# miss the first row, whose is returned.
sub commit_late
{
	my ($self, $node, $late, $after, @readers) = @_;
	my $session = connect_to($node, 'late');
	run_in($session, 'BEGIN');
	my $missed = run_in($session, $late);
	my $position = $node->safe_psql('postgres', $after);
	$self->wait_for_reader($_, $position) foreach @readers;
	run_in($session, 'COMMIT');
	return $missed;
}

sub end_writers
{
	my ($self) = @_;
	append_to_file($self->file('enough'), '');
	return is(join("\n", map { $_->() } @{ $self->{writers} }), '', 'the writers had no error');
}

# When they have read what there is.
sub end_readers
{
	my ($self) = @_;
	append_to_file($self->file('stop'), '');
	return is(join("\n", map { $_->() } @{ $self->{readers} }), '', 'the readers had no error');
}

# $load->check(NAME, COMMITTED): has the reader seen all of these, the lines of a query, none
# twice, nothing else, and in ascending order; or missed so many at least?
sub check
{
	my ($self, $name, $committed, $missed_at_least) = @_;
	my %committed = map { $_ => 1 } split /\n/, $committed;
	my @seen = split /\n+/, $self->seen($name);
	my %seen = map { $_ => 1 } @seen;
	my $missed = grep { !$seen{$_} } keys %committed;
	my $right = grep { $committed{$_} } keys %seen;
	my $descents = grep { $seen[$_] le $seen[ $_ - 1 ] } 1 .. $#seen;

	note "$name: $missed of " . keys(%committed) . ' rows missed';
	is(@seen - $right, 0, "$name: no row twice, and none that was not committed");
	is($descents, 0, "$name: in ascending order");
	return is($missed, 0, "$name: no row is missed") if !$missed_at_least;
	return cmp_ok($missed, '>=', $missed_at_least, "$name: rows are missed");
}

1;

# The watermark as a row, for readers elsewhere: sessions write into a table, and one
# repeats UPDATE feed_watermark SET id = uuidv7_feed_id(), upto = uuidv7_feed_watermark().  On a standby and on
# a logical subscriber a reader that asks for the rows below that row, in one statement,
# sees each committed row exactly once, in ascending order; one that asks naively for
# those above the greatest id that it has seen misses rows.  In the middle the primary
# crashes, and the standby is promoted under its readers.
#
# FAST_UUID_FIRE_PASSES: how often the readers see rows before the crash, and after (30).

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use Watchdog;

my $enough_passes = $ENV{FAST_UUID_FIRE_PASSES} // 30;
my $writers = 10;
my $files   = PostgreSQL::Test::Utils::tempdir();
my ($promoted, $enough, $stop) = map { "$files/$_" } 'promoted', 'enough', 'stop';

my $primary = start_feed('primary', "max_connections = 40\nmax_prepared_transactions = 60", allows_streaming => 'logical');
my $tables = q{
CREATE TABLE outbox (id uuid PRIMARY KEY, server text);
CREATE TABLE feed_watermark (n int PRIMARY KEY, id uuid, upto uuid);
};
my $update = 'UPDATE feed_watermark SET id = uuidv7_feed_id(), upto = uuidv7_feed_watermark()';
$primary->safe_psql('postgres', qq{
$tables
ALTER TABLE outbox ALTER id SET DEFAULT uuidv7_feed_id(), ALTER server SET DEFAULT current_setting('cluster_name');
${\ guard('outbox')};
INSERT INTO outbox SELECT FROM generate_series(1, 10);
INSERT INTO feed_watermark VALUES (1, uuidv7_feed_id(), uuidv7_feed_watermark());
CREATE PUBLICATION feed FOR TABLE outbox, feed_watermark});

$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);

# It has the rows and the bound, and not even the extension.
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->start;
$subscriber->safe_psql('postgres', $tables);
$subscriber->safe_psql('postgres', 'CREATE SUBSCRIPTION feed CONNECTION $$' . $primary->connstr('postgres') . '$$ PUBLICATION feed');
$subscriber->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_subscription_rel WHERE srsubstate = 'r'")
  or BAIL_OUT('no initial copy');

# Repeats some work on the primary, and where that has ended, on the promoted server.
sub repeat_until_enough
{
	my ($name, $work) = @_;
	my $node    = $primary;
	my $session = connect_to($node, $name);
	return in_background($name, sub {
		for (my $number = 0; !-e $enough; $number++)
		{
			next if eval { $work->($session, "$name $number"); 1 };

			# Another has finished the prepared transaction, or is about to.
			next if $@ =~ /^(?:42704|55000) prepared transaction/;
			die $@ unless $@ eq "closed\n" && $node == $primary;
			wait_until('the standby is promoted', sub { -e $promoted });
			$session = connect_to($node = $standby, $name);
		}
		$session->quit;
	});
}

my $insert     = 'INSERT INTO outbox DEFAULT VALUES';
my $savepoints = "SAVEPOINT a; $insert; ROLLBACK TO a; $insert; SAVEPOINT b; $insert; RELEASE b";

sub write_transaction
{
	my ($session, $gid) = @_;
	my $choice = rand;
	return run_in($session, $insert) if $choice < 0.1;
	return finish_prepared($session) if $choice < 0.2;

	run_in($session, 'BEGIN');
	foreach (0 .. rand 3)
	{
		run_in($session, rand() < 0.5 ? $insert : $savepoints);
		pause(10);
	}
	pause(40);

	$choice = rand;
	return run_in($session, 'COMMIT') if $choice < 0.75;
	return run_in($session, 'ROLLBACK') if $choice < 0.85;
	run_in($session, "PREPARE TRANSACTION '$gid'");
	return if rand() < 0.5;
	pause(20);
	return finish_prepared($session, $gid);
}

# On a standby there is no place for what a reader has seen, but a file.
sub reader
{
	my ($node, $reader, $below) = @_;
	my $name = $node->name . " $reader";
	return follow($node, $name, "$files/$name", $stop, sub { run_in($_[0], "SELECT id FROM outbox WHERE id > '$_[1]' $below ORDER BY id") });
}

sub wait_for_passes
{
	my ($node) = @_;
	my $file = "$files/" . $node->name . ' by the row';
	my $before = passes($file);
	wait_until($node->name . ' reads by the row', sub { passes($file) >= $before + $enough_passes });
	return;
}

my @readers =
  map { (reader($_, 'by the row', 'AND id < (SELECT upto FROM feed_watermark)'), reader($_, 'naively', '')) } $standby, $subscriber;
my @writers = map { repeat_until_enough("writer $_", \&write_transaction) } 1 .. $writers;
push @writers, repeat_until_enough('updater', sub { run_in($_[0], $update); pause(5) });
wait_for_passes($_) foreach $standby, $subscriber;

my $session = connect_to($standby, 'asks');
is($session->outcome('SELECT uuidv7_feed_watermark()'), '55000', 'on a standby the function is refused');
my $below_row = 'FROM outbox WHERE id < (SELECT upto FROM feed_watermark)';
my ($upto, $count) = split /\|/, run_in($session, "SELECT concat((SELECT upto FROM feed_watermark), '|', count(*)) $below_row");
cmp_ok($count, '>', 10, "but the row is there, and $count rows below it");
$session->quit;

# A session of the standby has keys, and goes on through the promotion.
my $living = connect_to($standby, 'keys');
my @keys = run_in($living, 'SELECT uuidv7_fast()');

sub generate_keys
{
	my ($when) = @_;
	push @keys, split /\n/, run_in($living, "SELECT unnest(uuidv7_fast_array(1000)); SELECT uuidv7_fast_max(clock_timestamp() + '500 ms')");
	push @keys, run_in($living, "SELECT fast_uuid_observe('$keys[-1]'); SELECT uuidv7_fast()") =~ s/^\n//r;
	is(scalar(grep { $keys[$_] le $keys[ $_ - 1 ] } 1 .. $#keys), 0, "keys $when: each is greater than the one before");
	return;
}
generate_keys('on a standby');

$primary->stop('immediate');
$standby->promote;
append_to_file($promoted, '');
generate_keys('promoted, in the same session');
like(run_in($living, 'SELECT uuidv7_feed_id()'), qr/-/, 'which has a feed id then');
$living->quit;
wait_for_passes($standby);
append_to_file($enough, '');
is(join("\n", map { $_->() } @writers), '', "$writers writers and one that updates the row have gone on, on the promoted server");

# What was prepared and not finished, the last bound; the subscriber gets nothing more.
my @prepared = split /\n/, $standby->safe_psql('postgres', 'SELECT gid FROM pg_prepared_xacts');
$standby->safe_psql('postgres', "COMMIT PREPARED '$_'") foreach @prepared;
$standby->safe_psql('postgres', $update);
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION feed DISABLE');
$subscriber->poll_query_until('postgres', 'SELECT bool_and(pid IS NULL) FROM pg_stat_subscription') or BAIL_OUT('the subscription goes on');
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on in their sessions, through the promotion');
is($standby->safe_psql('postgres', "SELECT count(*) FROM outbox WHERE id < '$upto'"), $count, 'what the standby had below the row was all');

# Against the rows that a server has, or has below the row, by the server that wrote them.
note 'prepared transactions left at the end: ' . @prepared;
foreach my $node ($standby, $subscriber)
{
	my $name = $node->name;
	my %server = map { split /\|/ } split /\n/, $node->safe_psql('postgres', 'SELECT id, server FROM outbox');
	my $bound = $node->safe_psql('postgres', 'SELECT upto FROM feed_watermark');
	my %below = map { $_ => 1 } grep { $node == $standby || $_ lt $bound } keys %server;
	check_readers(\%below, $files, "$name by the row" => 0);
	check_readers(\%server, $files, "$name naively" => 1);
	foreach my $writing ('primary', $node == $standby ? 'standby' : ())
	{
		my @passes = grep { $server{ (split /\n/)[0] } eq $writing } passes("$files/$name by the row");
		cmp_ok(scalar(@passes), '>=', 10, "the $name: rows of the $writing came, again and again");
	}
}
unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, 'no PANIC and no failed assertion: ' . $_->name) foreach $primary, $standby, $subscriber;
$_->stop foreach $subscriber, $standby;
done_testing();

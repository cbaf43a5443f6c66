# Sixteen clients insert rows whose keys are made by default, from every source
# and under both orders: no error, no key twice, and no memory that grows.
#
#   SECONDS_PER_SOURCE=n   half of it under each order (script/load: 30); without
#                          it two seconds a source, each under one of the orders

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $clients = 16;
my $long    = $ENV{SECONDS_PER_SOURCE};
my $seconds = $long ? int(($long + 1) / 2) : 2;    # of a run
my @orders  = ('session', 'instance');
my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my $warm    = $long ? 1000 : 200;    # rows of a backend before its memory counts

# Invalidations have a backend load catalog entries and plans again now and then.
# A value lost in each row would be 40 bytes times the 10,000 and more rows of a
# backend in a long run; memory_does_not_grow.pl looks closer.
my $growth_allowed = 256;    # kB

my $node = PostgreSQL::Test::Cluster->new('load');
$node->init;
$node->append_conf(
	'postgresql.conf', qq{
shared_preload_libraries = 'fast_uuid'
max_connections = 40
jit = off
synchronous_commit = off
max_wal_size = 4GB
});
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  backend integer NOT NULL DEFAULT pg_backend_pid(),
  run     text NOT NULL DEFAULT current_setting('application_name'))});

my $script = $node->basedir . '/insert.sql';
append_to_file($script, "INSERT INTO item DEFAULT VALUES;\n");

# Anonymous memory of a process in kB; undefined where it has ended.
sub memory
{
	my ($pid) = @_;
	open(my $status, '<', "/proc/$pid/status") or return undef;
	my ($kb) = join('', <$status>) =~ /^RssAnon:\s+(\d+) kB/m;
	return $kb;
}

# Largest growth in kB of one of these backends since they were warm, while the
# command runs; undefined where they never were all warm.
sub watch_memory
{
	my ($command, $run) = @_;
	my (%first, %latest);
	while (IPC::Run::pumpable($command) && do { IPC::Run::reap_nb($command); IPC::Run::pumpable($command) })
	{
		if (!%first)
		{
			my @warm = split /\n/, $node->safe_psql('postgres',
				"SELECT backend FROM item WHERE run = '$run' GROUP BY backend HAVING count(*) >= $warm");
			%first = map { $_ => memory($_) } @warm if @warm == $clients;
		}
		else
		{
			foreach my $pid (keys %first)
			{
				my $kb = memory($pid);
				$latest{$pid} = $kb if defined $kb;
			}
		}
		usleep(100_000);
	}
	return undef if keys %latest < $clients;
	my ($most) = sort { $b <=> $a } map { $latest{$_} - $first{$_} } keys %latest;
	return $most;
}

my $inserted = 0;
foreach my $i (0 .. $#sources)
{
	my $source = $sources[$i];
	foreach my $ordering ($long ? @orders : $orders[ $i % 2 ])
	{
		my $run = "$source $ordering";
		my $output = $node->basedir . '/output';
		my $running;
		{
			local $ENV{PGOPTIONS} = "-c fast_uuid.source=$source -c fast_uuid.ordering=$ordering";
			local $ENV{PGAPPNAME} = $run;
			$running = IPC::Run::start(
				[ 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', 2, '-T', $seconds, '-f', $script, $node->connstr('postgres') ],
				'<', '/dev/null', '>', $output, '2>', "$output.err");
		}
		my $growth = -r "/proc/$$/status" ? watch_memory($running, $run) : undef;
		ok(IPC::Run::finish($running), "$run: pgbench ended well");
		my $out = slurp_file($output);
		my $err = slurp_file("$output.err");

		my ($transactions) = $out =~ /transactions actually processed: (\d+)/ or diag("$out$err");
		my ($tps)          = $out =~ /tps = (\d+)/;
		unlike("$out$err", qr/error|aborted|failed transactions: [1-9]/i, "$run: no error");
		my ($rows, $different, $backends) = split /\|/, $node->safe_psql('postgres',
			"SELECT count(*), count(DISTINCT id), count(DISTINCT backend) FROM item WHERE run = '$run'");
		is("$rows $different $backends", "$transactions $transactions $clients", "$run: a row for each of $transactions transactions, no key twice");
	  SKIP:
		{
			skip "$run: too short to see the memory of each backend twice, or no /proc", 1 unless defined $growth;
			cmp_ok($growth, '<', $growth_allowed, "$run: memory stays (grew by $growth kB at most)");
		}
		$inserted += $transactions;
		my $figures = sprintf '%-12s %-8s %9d transactions, %6d a second, %d duplicates, memory %s',
		  $source, $ordering, $transactions, $tps, $rows - $different,
		  defined $growth ? "+$growth kB at most" : 'not seen';
		$long ? diag($figures) : note($figures);
	}
}

is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM item'),
	"$inserted|$inserted", "$inserted rows of all sources and orders, no key twice");
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|PANIC|was terminated/, 'the log has no error');

$node->stop;
done_testing();

# Sixteen clients insert rows with the default as their key, from every source
# and under both orders: no error, no key twice, and no memory that grows.
#
#   SECONDS_PER_SOURCE=n   half of it under each order; without it two seconds a
#                          source, each under one of the orders

use strict;
use warnings;

use IPC::Run;
use List::Util qw(max);
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
$node->append_conf('postgresql.conf', q{
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

# The anonymous memory in kB of each backend of a run that is warm.
sub memory
{
	my ($run) = @_;
	my %memory;
	foreach my $pid (split /\n/,
		$node->safe_psql('postgres', "SELECT backend FROM item WHERE run = '$run' GROUP BY backend HAVING count(*) >= $warm"))
	{
		my ($kb) = (eval { slurp_file("/proc/$pid/status") } // '') =~ /^RssAnon:\s+(\d+) kB/m;
		$memory{$pid} = $kb if defined $kb;
	}
	return %memory;
}

foreach my $i (0 .. $#sources)
{
	my $source = $sources[$i];
	foreach my $ordering ($long ? @orders : $orders[ $i % 2 ])
	{
		my $run = "$source $ordering";
		local $ENV{PGOPTIONS} = "-c fast_uuid.source=$source -c fast_uuid.ordering=$ordering";
		my $output = $node->basedir . '/output';
		my ($running, %first);
		my $growth = 0;
		{
			local $ENV{PGAPPNAME} = $run;
			$running = IPC::Run::start(
				[ 'pgbench', '-n', '-M', 'prepared', '-c', $clients, '-j', 2, '-T', $seconds, '-f', $script, $node->connstr('postgres') ],
				'<', '/dev/null', '>&', $output);
		}
		while (IPC::Run::pumpable($running) && do { IPC::Run::reap_nb($running); IPC::Run::pumpable($running) })
		{
			my %now = memory($run);
			$first{$_} //= $now{$_} foreach keys %now;
			$growth = max($growth, map { $now{$_} - $first{$_} } keys %now);
			usleep(100_000);
		}
		ok(IPC::Run::finish($running), "$run: pgbench ended well");
		my $out = slurp_file($output);
		my ($transactions) = $out =~ /transactions actually processed: (\d+)/ or diag($out);
		unlike($out, qr/error|aborted|failed transactions: [1-9]/i, "$run: no error");
		is( $node->safe_psql('postgres', "SELECT count(*), count(DISTINCT backend) FROM item WHERE run = '$run'"),
			"$transactions|$clients", "$run: a row for each of $transactions transactions");
	  SKIP:
		{
			skip "$run: too short to see the memory of each backend, or no /proc", 1 unless keys %first == $clients;
			cmp_ok($growth, '<', $growth_allowed, "$run: memory stays (grew by $growth kB at most)");
		}
		my $figures = "$run: $transactions transactions, memory +$growth kB at most";
		$long ? diag($figures) : note($figures);
	}
}

is($node->safe_psql('postgres', 'SELECT count(*) - count(DISTINCT id) FROM item'), '0', 'no key twice');
unlike(slurp_file($node->logfile), qr/ERROR|FATAL|PANIC|was terminated/, 'the log has no error');

$node->stop;
done_testing();

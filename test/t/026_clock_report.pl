# fast_uuid_clock() says what the system says, of which a part may be missing or
# strange: then it is null, never an error.  And it says how far the latest UUIDs
# are ahead of the clock.

use strict;
use warnings;

use Config;
use Errno qw(EINVAL ENOSYS EPERM);
use POSIX qw(uname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(clock_getres);

use lib 'test/perl';
use FakeClock;
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $source_file = '/sys/devices/system/clocksource/clocksource0/current_clocksource';
my $coarse      = 5;    # CLOCK_REALTIME_COARSE, linux/time.h

# What the kernel says of its clock; the errors in microseconds.
my $kernel = 'SELECT synchronized, (extract(epoch FROM estimated_error) * 1000000)::bigint,'
  . ' (extract(epoch FROM maximum_error) * 1000000)::bigint FROM fast_uuid_clock()';

# adjtimex(2), from include/uapi/asm-generic/unistd.h and x86's table; its struct
# where long has 64 bits.
my %adjtimex = (x86_64 => 159, aarch64 => 171);
my ($time_error, $sta_unsync) = (5, 0x40);

# The same by this process, as psql shows it; undef: not on this processor.
sub kernel_says
{
	my $call = $adjtimex{ (uname())[4] };
	return unless defined $call && $Config{ptrsize} == 8;
	my $timex = "\0" x 256;
	my $state = syscall($call, $timex);
	return '||' if $state < 0;
	my ($maxerror, $esterror, $status) = unpack('x24 q q l', $timex);
	return join '|', $state == $time_error || $status & $sta_unsync ? 'f' : 't', $esterror, $maxerror;
}

# The system's own word.
my $node = start_faulty_node('clock', preload => 1, initdb => [ '--encoding=UTF8', '--locale=C' ]);
is($node->safe_psql('postgres', 'SELECT resolution_ns FROM fast_uuid_clock()'),
	sprintf('%.0f', clock_getres() * 1e9), 'the resolution of the clock');
is( $node->safe_psql('postgres', 'SELECT coarse_resolution_ns FROM fast_uuid_clock()'),
	sprintf('%.0f', clock_getres($coarse) * 1e9),
	'the resolution of the coarse clock');
my $source = -r $source_file ? slurp_file($source_file) =~ s/\n//r : '';
is($node->safe_psql('postgres', 'SELECT clock_source FROM fast_uuid_clock()'), $source, 'the clock source');

# As in a container; the server then does not ask.
my $filtered = slurp_file('/proc/self/status') =~ /^Seccomp:\s*[12]/m;

SKIP:
{
	skip 'system calls are filtered here', 1 if $filtered;
	skip 'adjtimex is not known on this processor', 1 unless defined kernel_says();

	# The maximum error grows every second.
	my ($before, $seen, $after);
	foreach (1 .. 1000)
	{
		($before, $seen, $after) = (kernel_says(), $node->safe_psql('postgres', $kernel), kernel_says());
		last if $before eq $after;
	}
	is($seen, $after, 'what the kernel says of its clock');
}

# Other words, and none.
my $session = session_of($node);
my $query   = $kernel =~ s/SELECT (.*) FROM/SELECT concat_ws('|', $1) FROM/r;
SKIP:
{
	skip 'system calls are filtered here', 10 if $filtered;

	# In nanoseconds the former, and the latter anyhow, is beyond 64 bits.
	my ($large, $largest) = ('20000000000000000', '9223372036854775807');
	foreach my $case (
		[ 'says 0 0 123 4567',           't|123|4567',          'a clock that is right' ],
		[ 'says 0 8193 0 0',             't|0|0',               'a clock that counts nanoseconds' ],
		[ 'says 1 17 1 2',               't|1|2',               'a clock before a leap second' ],
		[ 'says 4 1 1 2',                't|1|2',               'a clock after it' ],
		[ 'says 5 64 16000000 16000000', 'f|16000000|16000000', 'a clock that nobody has corrected' ],
		[ 'says 0 64 1 2',               'f|1|2',               'a clock that is not synchronized any more' ],
		[ 'says 5 4096 1 2',             'f|1|2',               'a clock whose hardware has failed' ],
		[ "says 0 0 $large $largest",    "t|$large|$largest",   'errors beyond all limits' ],
		[ EPERM,                         '',                    'nothing: EPERM' ],
		[ ENOSYS,                        '',                    'nothing: ENOSYS' ])
	{
		my ($fault, $expected, $name) = @$case;
		$session->query_safe("SELECT inject_fault('adjtimex $fault')");
		is(outcome($session, $query), "value $expected", "by the kernel's word $name");
	}
}

$session->query_safe("SELECT inject_fault('coarse " . EINVAL . "')");
is(outcome($session, 'SELECT coarse_resolution_ns IS NULL FROM fast_uuid_clock()'), 'value true', 'no coarse clock');

my $file = $node->basedir . '/source';
foreach my $case (
	[ "tsc\n",             'tsc',     'a name and the end of the line' ],
	[ 'acpi_pm',           'acpi_pm', 'a name alone' ],
	[ "hpet\nkvm-clock\n", 'hpet',    'the first line counts' ],
	[ 'x' x 100,           'x' x 63,  'a long name is cut' ],
	[ '',                  'null',    'an empty file' ],
	[ "\n",                'null',    'an empty line' ],
	[ "caf\xe9\n",         'null',    'what is no text in the encoding of the database' ])
{
	my ($content, $expected, $name) = @$case;
	unlink $file;
	append_to_file($file, $content);
	$session->query_safe("SELECT inject_fault('clocksource $file')");
	is(outcome($session, "SELECT coalesce(clock_source, 'null') FROM fast_uuid_clock()"),
		"value $expected", "clock source: $name");
}
my $calls = 'SELECT count(fast_uuid_clock()) FROM generate_series(1, 100)';
$session->query_safe($calls);
my $open = descriptors($session);
foreach my $case ([ $node->basedir, 'a folder' ], [ "$file/missing", 'no file' ])
{
	my ($path, $name) = @$case;
	$session->query_safe("SELECT inject_fault('clocksource $path')");
	is(outcome($session, 'SELECT clock_source IS NULL FROM fast_uuid_clock()'), 'value true', "clock source: $name");
	is(outcome($session, $calls), 'value 100', "clock source: $name, again and again");
}
$session->query_safe("SELECT inject_fault('')");
is(outcome($session, $calls), 'value 100', 'a hundred calls without any fault');
is(descriptors($session), $open, 'no descriptor is left open');

# All descriptors in use, some of them by files that the server keeps open for later.
$session->query_safe('SELECT count(*) FROM pg_class, pg_proc; SELECT take_descriptors(true)');
is(outcome($session, "SELECT coalesce(clock_source, '') FROM fast_uuid_clock()"),
	"value $source", 'where all descriptors are in use one of the server\'s own is freed');
$session->query_safe('SELECT take_descriptors(false)');

# A filter of system calls could kill who asks.
SKIP:
{
	my $installed = outcome($session, 'SELECT getrandom_fault(0)');
	skip "no seccomp filter can be installed here: $installed", 2 unless $installed eq 'value true';
	$session->query_safe("SELECT inject_fault('adjtimex says 0 0 1 2')");
	is(outcome($session, $query), 'value ', 'under a filter of system calls the kernel is not asked');
	is(outcome($session, 'SELECT resolution_ns > 0 AND session_lead IS NOT NULL FROM fast_uuid_clock()'),
		'value true', 'the rest is told');
}
$session->quit;
stop_faulty_node($node);

SKIP:
{
	skip 'libfaketime is not installed', 1 unless fake_clock_installed();

	# How far the latest UUIDs are ahead: of the session, of the instance.
	my $leads = 'SELECT session_lead, instance_lead FROM fast_uuid_clock()';
	start_with_fake_clock($node);
	if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
	{
		is($node->safe_psql('postgres', $leads), '00:00:00|', 'without shared memory there is no lead of the instance');
		$node->stop;
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
		start_with_fake_clock($node);
	}
	is($node->safe_psql('postgres', $leads), '00:00:00|00:00:00', 'before the first UUID there is no lead');

	$session = $node->background_psql('postgres', on_error_stop => 0);
	freeze_clock($node, '2031-02-03 04:05:06');
	$session->query_safe('SELECT uuidv7_fast()');
	is($session->query_safe($leads), '00:00:00|00:00:00', 'nor at the time of the latest');
	freeze_clock($node, '2031-02-03 03:05:04');
	is($session->query_safe($leads), '01:00:02|00:00:00', 'the session is ahead of a clock that stepped backwards');
	$session->query_safe('SELECT cardinality(uuidv7_fast_array(7999))');
	is($session->query_safe($leads), '01:00:02.000007|00:00:00', 'and by a nanosecond more with each UUID');
	is($node->safe_psql('postgres', $leads), '00:00:00|00:00:00', 'another session is not');
	$session->query_safe("SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast()");
	is($session->query_safe($leads), '01:00:02.000008|01:00:02.000008', 'under instance order it takes the instance along');
	is($node->safe_psql('postgres', $leads), '00:00:00|01:00:02.000008', 'which every session sees');
	freeze_clock($node, '2031-02-03 04:05:05');
	is($session->query_safe($leads), '00:00:01.000008|00:00:01.000008', 'while the clock catches up the leads shrink');
	freeze_clock($node, '2031-02-03 04:05:07');
	is($session->query_safe($leads), '00:00:00|00:00:00', 'until there are none');
	freeze_clock($node, '2031-02-03 03:05:07');
	$session->query_safe('SELECT fast_uuid_reset_ordering()');
	is($session->query_safe($leads), '00:00:00|00:00:00', 'nor after a reset');

	set_clock_offset($node, '+17000000000');
	is( $session->query("\\set VERBOSITY sqlstate\n$leads") . $session->{stderr} =~ s/.*(ERROR: *\w+).*/$1/sr,
		'ERROR:  22008', 'a clock after 2554 is an error here as elsewhere');
	$session->{stderr} = '';
	$session->quit;
	$node->stop;
}

done_testing();

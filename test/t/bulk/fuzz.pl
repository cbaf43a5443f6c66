# Random arguments and settings: every call answers with a value that can be, or with an
# SQLSTATE that is listed for it, and the server lives.  Perl makes the calls; a
# function in the server carries them out and judges each.
#
#   TEST_SEED=n    the calls of an earlier run again (it printed its seed)
#   FUZZ_CALLS=n   how many

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RandomSeed;

my $calls = $ENV{FUZZ_CALLS} // 50_000;
my $batch = 12_500;                         # calls of one session
my $array_max = 67_108_862;

my @sources  = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my @settings = qw(source allowed_sources buffer_size vdso seed max_clock_lead);

sub pick { return $_[ rand @_ ] }
sub digits { return join '', map { int rand 10 } 1 .. $_[0] }

# Anything but the byte 0; not even characters where the database takes bytes.
sub garbage
{
	my ($bytes) = @_;
	my $length = rand() < 0.002 ? int rand 100_000 : int rand pick(4, 20, 70);
	my $alphabet = pick(
		sub { chr(1 + int rand 127) },
		sub { chr(32 + int rand 95) },
		sub { chr(pick(0xA1, 0xE4, 0x130, 0x131, 0x212A, 0x17F, 0x3042, 0x4E2D, 0x301, 0x202E, 0xFEFF, 0x1F600, 0x10FFFF)) },
		sub { pick(' ', "\t", "\n", ',', '"', "'", '\\', '%', '$1', '+', '-', '0', 'x', 'e') });
	my $text = join '', map { $alphabet->() } 1 .. $length;
	utf8::encode($text);
	$text = join '', map { chr(1 + int rand 255) } 1 .. $length if $bytes && rand() < 0.7;
	return $text;
}

# A word that is right, or nearly.
sub nearly
{
	my ($word) = @_;
	my $at = int rand length $word;
	return pick(
		$word, $word, $word, uc $word, ucfirst $word,
		join('', map { pick(uc, lc) } split //, $word),
		" $word", "$word ", "$word\n", substr($word, 0, $at), substr($word, $at), $word x 2,
		substr($word, 0, $at) . chr(1 + int rand 127) . substr($word, $at + 1));
}

sub source
{
	my ($bytes) = @_;
	my $kind = rand;
	return $kind < 0.35 ? undef : $kind < 0.7 ? pick(@sources) : $kind < 0.9 ? nearly(pick(@sources)) : garbage($bytes);
}

sub integer
{
	return pick(
		0, 1, -1, 2**31 - 1, -2**31, 2**31, '9223372036854775807', '-9223372036854775808', '9223372036854775808',
		$array_max + 1, '-0', '0x10', '1e3', '', undef, ' 7 ', digits(1 + int rand 30), int rand 300, int rand 300);
}

# Arrays that are granted are small, but for a few.
sub count
{
	return 50_000 + int rand 50_000 if rand() < 0.0005;
	my $count = rand() < 0.4 ? int rand 60 : integer();
	return defined $count && $count =~ /^\s*\d+\s*$/ && $count > 300 && $count <= $array_max ? $array_max + 1 : $count;
}

sub interval
{
	my ($bytes) = @_;
	my $number = sub { pick('', '-', '+') . pick(int rand 100, digits(1 + int rand 12), '1e' . int rand 320, rand, '2147483647') };
	my @units  = qw(us ms s sec min hours d days weeks mons years decades centuries millennia);
	return pick(
		undef, 'infinity', '-infinity', '@ 1 day ago', 'P1Y2M3DT4H5M6S', 'P-99999Y', '178000000 years', '-178000000 years',
		'2147483647 days 2147483647 months', '-2147483648 days', '9223372036854775807 us', '-9223372036854775808 us',
		'-56 years', '8863 years', '0', garbage($bytes),
		map { join ' ', map { $number->() . ' ' . pick(@units) } 0 .. int rand $_ } 1, 1, 1, 2, 2, 4);
}

sub timestamp
{
	my ($bytes) = @_;
	my $year = pick(1970 + int rand 100, 1 + int rand 9999, 10_000 + int rand 1000, int rand 300_000, digits(1 + int rand 8));
	return pick(
		undef, 'infinity', '-infinity', 'epoch', '1970-01-01 00:00:00+00', '1969-12-31 23:59:59.999999+00',
		'10889-08-02 05:31:50.655999+00', '10889-08-02 05:31:50.656+00', '294276-12-31 23:59:59.999999+00',
		'4714-11-24 00:00:00+00 BC', '2016-12-31 23:59:60Z', '24:00', '2000-02-30', garbage($bytes),
		map {
			sprintf('%s-%02d-%02d %02d:%02d:%02d.%s%s%s', $year, 1 + rand 12, 1 + rand 29, rand 24, rand 60, rand 60,
				digits(1 + int rand 7), pick('Z', '+14', '-15:59', ''), pick('', '', '', '', ' BC'))
		} 1 .. 14);
}

sub uuid
{
	my ($bytes) = @_;
	my $hex = join '', map { sprintf '%x', rand 16 } 1 .. 32;
	substr($hex, 12, 1) = '7' if rand() < 0.7;
	substr($hex, 16, 1) = pick(8, 9, 'a', 'b') if rand() < 0.8;
	$hex =~ s/^(.{8})(....)(....)(....)/$1-$2-$3-$4-/ if rand() < 0.8;
	return pick(undef, garbage($bytes), "{$hex}", nearly($hex), '0' x 32, 'f' x 32, $hex, $hex, $hex, $hex, $hex, $hex);
}

sub setting_value
{
	my ($name, $bytes) = @_;
	return undef if rand() < 0.2;
	return garbage($bytes) if rand() < 0.1;
	return nearly(pick(@sources)) if $name eq 'source';
	return rand() < 0.5
	  ? join(pick(',', ', '), @sources[0, map { 1 + int rand 3 } 1 .. 3])
	  : join(pick(',', ', ', ' ', ',,'), map { pick('', '"') . nearly(pick(@sources)) . pick('', '"') } 1 .. 1 + int rand 4)
	  if $name eq 'allowed_sources';
	return nearly(pick('on', 'off', 'true', 'false', 'yes', 'no', '0', '1')) if $name eq 'vdso';
	return pick('', digits(1 + int rand 21), '18446744073709551615', '18446744073709551616', '0xffffffffffffffff',
		'0x10000000000000000', '0x', '-1', '+1', ' 1', '0X0' . digits(int rand 17), '0x' . '0' x 20 . 'aF', '1e3', nearly('0x1f'))
	  if $name eq 'seed';
	return (integer() // '') . pick('', '', 'B', 'kB', 'MB', 'TB', 'ms', 's', 'd', ' us', nearly('min'));
}

my @kinds = (
	(map { [ 'now',   sub { (undef,         source(@_)) } ] } 1 .. 6),
	(map { [ 'feed',  sub { (undef,         source(@_)) } ] } 1 .. 6),
	[ 'position', sub { (undef, undef) } ],
	(map { [ 'shift', sub { (interval(@_),  source(@_)) } ] } 1 .. 6),
	(map { [ 'at',    sub { (timestamp(@_), source(@_)) } ] } 1 .. 6),
	(map { [ 'array', sub { (count(),       source(@_)) } ] } 1 .. 3),
	(map { [ 'set',   sub { (integer(),     source(@_)) } ] } 1 .. 3),
	(map { [ 'min',   sub { (timestamp(@_), undef) } ] } 1 .. 3),
	(map { [ 'max',   sub { (timestamp(@_), undef) } ] } 1 .. 3),
	(map { [ 'timestamp', sub { (uuid(@_), pick('t', 'f', undef)) } ] } 1 .. 4),
	(map { [ 'setting', sub { my $name = pick(@settings); (setting_value($name, @_), "fast_uuid.$name") } ] } 1 .. 6),
	[ 'setting', sub { (garbage(@_), 'fast_uuid.' . garbage(@_)) } ],
	[ 'sources', sub { (undef, undef) } ], [ 'stats', sub { (undef, undef) } ],
	[ 'reset', sub { (undef, undef) } ], [ 'feed_reset', sub { (undef, undef) } ]);

# A line for COPY: number, kind, argument, and source, flag or name.
sub call
{
	my ($n, $bytes) = @_;
	my $kind   = pick(@kinds);
	my @fields = ($kind->[0], $kind->[1]->($bytes));
	return join("\t", $n, map { defined $_ ? s/([\\\n\r\t])/sprintf '\\x%02x', ord $1/egr : '\N' } @fields) . "\n";
}

my $node = PostgreSQL::Test::Cluster->new('fuzz');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\ntimezone = 'UTC'\nlog_statement = none");
$node->start;
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid');
$node->safe_psql('postgres', 'CREATE ROLE plain');

my %bytes_in = (characters => 0, bytes => 1);
foreach my $database (sort keys %bytes_in)
{
	my $encoding = $bytes_in{$database} ? 'SQL_ASCII' : 'UTF8';
	$node->safe_psql('postgres', "CREATE DATABASE $database ENCODING '$encoding' LOCALE 'C' TEMPLATE template0");
	$node->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database), '-f', 'test/t/bulk/fuzz.sql' ],
		"$database: the judge is installed");
}

my $seed = seed_random();
my $made = 0;
while ($made < $calls)
{
	my $number   = $made / $batch;
	my $database = $number % 4 == 3 ? 'bytes' : 'characters';
	my $role     = $number % 3 == 2 ? 'plain' : 'superuser';
	my $file     = $node->basedir . '/calls';
	my $last     = $made + $batch;

	open(my $out, '>:raw', $file) or die "$file: $!";
	print $out map { call($_, $bytes_in{$database}) } $made + 1 .. $last;
	close($out);

	my ($code, $stdout, $stderr) = $node->psql($database,
		"COPY call FROM '$file';" . ($role eq 'plain' ? 'SET SESSION AUTHORIZATION plain;' : '') . "SELECT judge($made + 1, $last)");
	my $wrong = $code == 0
	  ? $node->safe_psql($database, "SELECT left(w::text, 600) FROM wrong AS w WHERE n > $made ORDER BY n LIMIT 5")
	  : "code $code: " . substr($stderr, 0, 600);
	is($wrong, '', "$database, $role: calls " . ($made + 1) . " to $last") or diag("TEST_SEED=$seed FUZZ_CALLS=$last repeats it");
	last if $code == 2;
	$made = $last;
}

# What was reached, so that a fuzz which tests nothing is noticed.
my %reached;
my $sum = 0;
foreach my $database (sort keys %bytes_in)
{
	foreach (split /\n/, $node->safe_psql($database, 'SELECT kind, answer, count(*) FROM answer GROUP BY 1, 2'))
	{
		my ($kind, $answer, $n) = split /\|/;
		$reached{"$kind $answer"} = 1;
		$sum += $n;
	}
}
cmp_ok($sum, '>=', $calls, "$sum calls were judged");
SKIP:
{
	skip 'too few calls to reach everything', 1 if $calls < 50_000;
	my %expected = (
		now => '22023 42501 value', shift => '22004 22008 22023 42501 value', at => '22004 22008 22023 42501 value',
		array => '22004 22023 42501 value', set => '22004 22023 42501 value', min => '22008 value', max => '22008 value',
		timestamp => 'value', setting => '22023 42501 42602 value', sources => 'value', stats => 'value',
		feed => '22023 42501 value', position => 'value', reset => '42501 value', feed_reset => '25001 42501');
	my @missing = grep { !$reached{$_} } map { my $kind = $_; map { "$kind $_" } split / /, $expected{$kind} } sort keys %expected;
	is("@missing", '', 'every kind of call met every answer');
}

is(slurp_file($node->data_dir . '/postmaster.pid'), $postmaster, 'the postmaster is the same');
unlike(slurp_file($node->logfile), qr/PANIC|was terminated|TRAP|reinitializing|invalid memory alloc|server process/,
	'the log knows of no crash');

$node->stop;
done_testing();

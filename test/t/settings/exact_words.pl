# What is nearly a seed, a list of sources, a size, a time, the name of a source or of an
# order is none: it is refused where it is set, and what was in force stays.  Where it was
# set before the library was loaded, the default applies; where that protects others
# there is an error, see chosen_source_or_error.pl.  What is one is read as it says.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('words');
$node->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

sub session
{
	return RawSession->connect($node, user => $user, database => 'postgres');
}

sub shown
{
	return "\"$_[0]\"" =~ s/\n/\\n/gr =~ s/\t/\\t/gr;
}

sub set
{
	my ($session, $setting, $text) = @_;
	return substr($session->outcome("SET fast_uuid.$setting = E'" . $text =~ s/'/''/gr . "'"), 0, 5);
}

# Of each setting: what there is in force before, and how it is seen; what a text
# stands for, in a way that is right; what is wrong, and what each call says where
# that was set beforehand.
my $stream  = "SELECT string_agg(right(uuidv7_fast('xorshift128+')::text, 14), ' ') FROM generate_series(1, 8)";
my $allowed = "SELECT coalesce(string_agg(name, ' '), 'none') FROM fast_uuid_sources() WHERE allowed";
my @wrong_names = (
	' urandom', 'urandom ', "urandom\n", 'urand', 'urandomx', 'u random', '"urandom"', '/dev/urandom', 'urandom,', '', ' ', '0', '1', 'default', 'all',
	'xorshift128', 'xorshift128++', 'xorshift', "\x{ef}\x{bd}\x{95}random");
my @wrong_orders = (' instance', 'instance ', "instance\n", 'inst', 'instances', '"instance"', 'session,instance', '', ' ', '0', '1', 'global', 'cluster');
my %settings = (
	seed => {
		now   => '42',
		see   => $stream,
		right => {
			'0'          => [ '00', '0x0', '0X0', '000000000000000000000000' ],
			'7'          => [ '07', '0x7' ],
			# Not octal.
			'10'         => [ '010', '0xA', '0x0a' ],
			'2989'       => [ '0xBaD', '0X0bAd' ],
			'10000000'   => ['0x989680'],
			'4294967296' => [ '0x100000000', '00004294967296' ],
			'18446744073709551615' => [ '0xffffffffffffffff', '0x0000ffffFFFFffffFFFF', '00018446744073709551615' ]
		},
		wrong => [
			' 1', '1 ', "1\n", "\t1", '+1', '-1', '-0', '1e3', '1.0', '1.', '1_000', '1,000', '0b1', '0o7', '0x', '0X', 'x1', '0xx1', '0x 1', '0x-1', '0x+1',
			'0x0x1', '1x', '0x1g', '0x1.8', 'a', 'ff', 'h2a', 'inf', 'nan', 'on', 'true', '$1', "\x{ef}\x{bc}\x{91}", '18446744073709551616',
			'36893488147419103232', '0x10000000000000000', '99999999999999999999999999'
		],
		call  => "SELECT uuidv7_fast('xorshift128+')"
	},
	allowed_sources => {
		now   => 'getrandom',
		see   => $allowed,
		right => {
			'urandom'            => [ 'URANDOM', ' urandom ', "\turandom\n", '"urandom"', '"URandom"', 'urandom,urandom', ',urandom,' ],
			'getrandom, urandom' => [ 'urandom,getrandom', "urandom\n,\tgetrandom", ' "urandom" , GETRANDOM', 'urandom,getrandom,urandom', 'urandom getrandom' ],
			''                   => [ ' ', "\t", ',' ]
		},
		wrong => [
			(grep { /\S/ && !/^\s*"?urandom"?,?\s*$/ } @wrong_names), 'urandom;getrandom',
			'urandom|getrandom', "''urandom''", '"urandom" x', '*', 'none', 'urandom, all', 'urand, urandom'
		]
	},
	source => {
		now   => 'getrandom',
		see   => 'SELECT name FROM fast_uuid_sources() WHERE current',
		right => { 'urandom' => [ 'URANDOM', 'URandom' ], 'xorshift128+' => ['XorShift128+'] },
		wrong => \@wrong_names,
		call  => 'SELECT uuidv7_fast()'
	},
	buffer_size => {
		now   => '1kB',
		see   => 'SHOW fast_uuid.buffer_size',
		right => { '64kB' => [ '65536', '65536B', ' 64 kB ' ], '0' => ['0kB'], '16B' => ['16'] },
		wrong => [ '65537', '65kB', '128kB', '1MB', '1GB', '-1', '-1kB', '1kb', '1KB', 'kB', '', ' ', '1x', '1kBx', '99999999999999999999' ],
		call  => 'SELECT uuidv7_fast()'
	},
	max_clock_lead => {
		now   => '5s',
		see   => 'SHOW fast_uuid.max_clock_lead',
		right => { '1s' => [ '1000', '1000ms', ' 1 s ' ], '0' => ['0ms'], '2147483647ms' => ['2147483647'] },
		wrong => [ '-2', '-2ms', '-1s', '25d', '2147483648', '1 month', '1S', 's', '', ' ', '1x' ],
		call  => 'SELECT uuidv7_fast()'
	},
	map {
		$_ => {
			now   => 'session',
			see   => "SHOW fast_uuid.$_",
			right => { 'instance' => [ 'INSTANCE', 'Instance' ], 'durable' => ['DURABLE'] },
			wrong => \@wrong_orders,
			call  => $_ eq 'ordering' && 'SELECT uuidv7_fast()'
		}
	} ('ordering', 'required_ordering'));

foreach my $setting (sort keys %settings)
{
	my %case    = %{ $settings{$setting} };
	my $session = session();
	$session->query("SELECT uuidv7_fast_min(now())");

	foreach my $plain (sort keys %{ $case{right} })
	{
		set($session, $setting, $plain);
		my $meant = $session->query($case{see});
		foreach my $text (@{ $case{right}{$plain} })
		{
			set($session, $setting, $case{now});
			isnt($session->query($case{see}), $meant, "$setting: another than " . shown($plain) . ' is in force');
			is(set($session, $setting, $text), 'value', "$setting: " . shown($text) . ' is accepted');
			is($session->query($case{see}), $meant, "$setting: " . shown($text) . ' is ' . shown($plain));
		}
	}

	set($session, $setting, $case{now});
	my $before = $session->query($case{see});
	foreach my $text (@{ $case{wrong} })
	{
		set($session, $setting, $case{now});
		is(set($session, $setting, $text), '22023', "$setting: " . shown($text) . ' is refused');
		is($session->query($case{see}), $before, "$setting: " . shown($text) . ' changes nothing');

		next unless $case{call};
		my $fresh = session();
		is(set($fresh, $setting, $text), 'value', "$setting: " . shown($text) . ' before the library is loaded');
		is(substr($fresh->outcome($case{call}), 0, 5), 'value', "$setting: " . shown($text) . ', then a call');
		is(set($fresh, $setting, $case{now}), 'value', "$setting: " . shown($text) . ' is corrected');
		is($fresh->query($case{see}), $before, "$setting: " . shown($text) . ' has left nothing') if $setting ne 'source';
		$fresh->quit;
	}
	$session->quit;
}

# The name as an argument, of every function.
my $session = session();
foreach my $call ('uuidv7_fast(%s)', 'uuidv7_fast_array(1, %s)', 'uuidv7_fast_set(1, %s)', "uuidv7_fast(interval '0', %s)", 'uuidv7_fast_at(now(), %s)')
{
	foreach my $name (@wrong_names)
	{
		is($session->outcome('SELECT ' . sprintf($call, "E'$name'")), '22023', "$call: " . shown($name) . ' is refused');
	}
	like($session->outcome('SELECT ' . sprintf($call, "'$_'")), qr/^value ./, "$call: $_ is accepted") foreach 'URandom', 'XORSHIFT128+';
}
# Of a long text whole characters are quoted.
$session->outcome("SELECT uuidv7_fast('x' || repeat(E'\\u00e4', 1000))");
like($session->{error}, qr/^22023 unrecognized entropy source "x(\xc3\xa4){49}\.\.\."\|/, 'a long text: its beginning is quoted');
is( $session->query("SELECT string_agg(name, ' ' ORDER BY name) FROM fast_uuid_stats() WHERE refills > 0"),
	'urandom xorshift128+', 'and no other source has been drawn from');
$session->quit;

$node->stop;
done_testing();

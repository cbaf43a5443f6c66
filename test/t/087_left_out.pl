# A list of allowed sources that leaves out the one which the configuration chooses:
# a server that preloads the library tells its log so, when it starts and when it reads
# its configuration again; where the two agree nothing is said.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('left_out');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $default = $node->safe_psql('postgres', "SELECT boot_val FROM pg_settings WHERE name = 'fast_uuid.source'");
my $marker  = 0;

# Let the server read these lines, and return what it says of them.  That it has come
# to their end is known by the last.
sub configure
{
	my ($how, @lines) = @_;
	my $from = -s $node->logfile;
	my $file = $node->data_dir . '/conf.d.conf';
	unlink $file;
	$marker++;
	append_to_file($file, join('', map { "$_\n" } @lines, "test.marker = '$marker'"));
	if ($how eq 'restart')
	{
		$node->restart;
	}
	else
	{
		$node->reload;
		$node->poll_query_until('postgres', 'SHOW test.marker', $marker) or BAIL_OUT('the configuration is not read');
	}
	return join '', map { "$_\n" } grep { /WARNING|DETAIL|HINT/ } split /\n/, substr(slurp_file($node->logfile), $from);
}
$node->append_conf('postgresql.conf', "include_if_exists = 'conf.d.conf'\n");

sub said
{
	my ($source) = @_;
	return qr/WARNING:  value "\Q$source\E" of "fast_uuid\.source" is not in "fast_uuid\.allowed_sources"\n.*DETAIL:  Calls that use this source raise an error\.\n.*HINT:  Set "fast_uuid\.source" to one of: getrandom, urandom\.\n/;
}

my $list   = "fast_uuid.allowed_sources = 'getrandom, urandom'";
my @silent = (
	[ 'no list' ],
	[ 'a list, and a source that is in it', $list, "fast_uuid.source = 'urandom'" ],
	[ 'the same the other way round', "fast_uuid.source = 'getrandom'", $list ],
	[ 'a list that has the default', "fast_uuid.allowed_sources = 'getrandom, $default'" ]);

SKIP:
{
	skip "the default is in the list: $default", 1 if $list =~ /$default/;
	foreach my $how ('restart', 'reload')
	{
		foreach my $case (@silent)
		{
			my ($name, @lines) = @$case;
			is(configure($how, @lines), '', "$how, $name: nothing is said");
			like(configure($how, $list), said($default), "$how, a list alone, after $name: the log says that it leaves out the source");
		}
		my $wrong = configure($how, "fast_uuid.allowed_sources = 'typo'");
		like($wrong, qr/WARNING:  invalid value for parameter "fast_uuid\.allowed_sources"/, "$how: a wrong list is told as such");
		unlike($wrong, qr/is not in/, "$how: a wrong list is told once");
	}
	like(configure('restart', $list, "fast_uuid.source = 'xorshift128+'"),
		said('xorshift128+'), 'restart, a source that is not in the list: the log says so');
}

# Sessions are told by the error.
configure('reload', $list);
my $from = -s $node->logfile;
foreach my $sql ('SELECT uuidv7_fast()', 'SET fast_uuid.allowed_sources = urandom; SELECT uuidv7_fast()')
{
	my $stderr;
	$node->psql('postgres', $sql, stderr => \$stderr);
	like($stderr, qr/^psql:<stdin>:\d+: ERROR:  .*"$default".*\n.*HINT:.*Set "fast_uuid\.source" to one of them/, "$sql: the error says what to set");
	unlike($stderr, qr/WARNING/, "$sql: without a warning");
}
unlike(substr(slurp_file($node->logfile), $from), qr/WARNING/, 'nor in the log');
$node->stop;
done_testing();

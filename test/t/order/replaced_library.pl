# From PostgreSQL 17 on the shared memory of the first library stays until the server
# ends.  For one whose memory has another size, or another layout of equal size, what
# needs that memory is an error that says what helps, in both directions; nothing else is.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

# The folder of a library of which some code of a header is another.
sub library_with
{
	my ($header, $from, $to) = @_;
	my $build = PostgreSQL::Test::Utils::tempdir();
	system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
	system_or_bail('make', '-s', '-C', $build, 'clean', 'PG_CONFIG=pg_config');
	my $code = slurp_file("$build/$header");
	is($code =~ s/$from/$to/, 1, "another library: $to");
	unlink "$build/$header";
	append_to_file("$build/$header", $code);
	system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'PG_CONFIG=pg_config');
	return $build;
}

my $node = PostgreSQL::Test::Cluster->new('replaced');
$node->init;
$node->start;
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$node->stop;
	plan skip_all => 'before PostgreSQL 17 the library is replaced by a restart';
}
my $own = $node->safe_psql('postgres', 'SHOW dynamic_library_path');
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

# What comes of a statement in a new session with the library of a folder.
sub outcome
{
	my ($folder, $sql) = @_;
	local $ENV{PGOPTIONS} = "-c dynamic_library_path=$folder";
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $code == 0 ? $out : $err;
}

my %generates = map { $_ => "SET fast_uuid.ordering = '$_'; SELECT uuidv7_fast() IS NOT NULL" } 'session', 'instance', 'durable';
my @shared   = (@generates{ 'instance', 'durable' }, 'SELECT uuidv7_fast_watermark()', 'SELECT * FROM fast_uuid_stats()');

my $refused = qr/ERROR:  55000: shared memory of fast_uuid is that of another version of the library\nHINT:  Restart the server\./;

my %libraries = (
	'another size'   => library_with('src/ordering/shared.h', 'typedef struct SharedOrdering\n\{', "typedef struct SharedOrdering\n{\n\tuint64\t\tadded;"),
	'another layout' => library_with('src/ordering/shared.h', 'FUUID_SHARED_LAYOUT 1\b',           'FUUID_SHARED_LAYOUT 2'));
foreach my $name (sort keys %libraries)
{
	my $other = $libraries{$name};
	foreach my $case ([ 'before', $own, $other ], [ 'after', $other, $own ])
	{
		my ($when, $first, $second) = @$case;
		$node->restart;
		is(outcome($first, $generates{instance}), 't', "$name, $when the own library: the first one generates");
		like(outcome($second, $_), $refused, "$name, $when the own library: refused: $_")
		  foreach @shared;
		is(outcome($second, $generates{session}), 't', "$name, $when the own library: session order needs none of it");
		is(outcome($first,  $generates{instance}), 't', "$name, $when the own library: the first one goes on");
	}
}
$node->restart;
is(outcome($libraries{'another size'}, $generates{$_}), 't', "after a restart it generates under $_ order") foreach sort keys %generates;

$node->stop;
done_testing();

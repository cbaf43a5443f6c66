# Another library under a server that goes on, from PostgreSQL 17 on, where the shared
# memory of the first one stays until the server ends: one whose memory has another
# size, and one with another layout of equal size.  What needs that memory is an error
# that says what helps, in both directions; nothing else is.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

my $node = PostgreSQL::Test::Cluster->new('replaced');
$node->init;
$node->start;
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$node->stop;
	plan skip_all => 'before PostgreSQL 17 the library is that of the server';
}
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

# The folder of a library of which some code of this header is another.
sub library_with
{
	my ($from, $to) = @_;
	my $build = PostgreSQL::Test::Utils::tempdir();
	system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
	system_or_bail('make', '-s', '-C', $build, 'clean', 'PG_CONFIG=pg_config');
	my $header = "$build/src/shared_ordering.h";
	my $code   = slurp_file($header);
	is($code =~ s/$from/$to/, 1, "another library: $to");
	unlink $header;
	append_to_file($header, $code);
	system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'PG_CONFIG=pg_config');
	return $build;
}

my $own = $node->safe_psql('postgres', 'SHOW dynamic_library_path');

# What comes of a statement in a new session with the library of a folder.
sub outcome
{
	my ($folder, $sql) = @_;
	local $ENV{PGOPTIONS} = "-c dynamic_library_path=$folder";
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	return $code == 0 ? $out : $err;
}

my %generates = map { $_ => "SET fast_uuid.ordering = '$_'; SELECT uuidv7_fast() IS NOT NULL" } 'session', 'instance', 'durable';
my $refused   = qr/ERROR:  55000: shared memory of fast_uuid is that of another version of the library\nHINT:  Restart the server\./;

my %libraries = (
	'another size'   => library_with('typedef struct SharedOrdering\n\{', "typedef struct SharedOrdering\n{\n\tuint64\t\tadded;"),
	'another layout' => library_with('FUUID_SHARED_LAYOUT 1\b',           'FUUID_SHARED_LAYOUT 2'));
foreach my $name (sort keys %libraries)
{
	my $other = $libraries{$name};
	foreach my $case ([ 'before', $own, $other ], [ 'after', $other, $own ])
	{
		my ($when, $first, $second) = @$case;
		$node->restart;
		is(outcome($first, $generates{instance}), 't', "$name, $when the own library: the first one generates");
		like(outcome($second, $_), $refused, "$name, $when the own library: refused: $_")
		  foreach @generates{ 'instance', 'durable' }, 'SELECT uuidv7_fast_watermark()', 'SELECT * FROM fast_uuid_stats()';
		is(outcome($second, $generates{session}), 't', "$name, $when the own library: session order needs none of it");
		is(outcome($first,  $generates{instance}), 't', "$name, $when the own library: the first one goes on");
	}
}
$node->restart;
is(outcome($libraries{'another size'}, $generates{$_}), 't', "after a restart it generates under $_ order") foreach sort keys %generates;

$node->stop;
done_testing();

# Every SQL example of the README and of doc/ runs as it is written.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('examples');
$node->init;

# As the pages say: before 17 instance order requires it.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
$node->start;

# What the examples take for granted.
$node->safe_psql('postgres', 'CREATE ROLE importer');

foreach my $page ('README.md', glob('doc/*.md'))
{
	my @examples = slurp_file($page) =~ /^```sql\n(.*?)^```$/msg;
	next unless @examples;
	my $database = lc($page =~ s/\W/_/gr);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION fast_uuid') unless grep { /CREATE EXTENSION/ } @examples;

	# In one session, as a reader would type them.
	my ($code, $out, $err) =
	  $node->psql($database, join("\n", @examples), on_error_stop => 1);
	is($code, 0, scalar(@examples) . " examples of $page") or diag($err);
}

$node->stop;
done_testing();

# Every SQL example of the README and of doc/ runs as it is written, in a time zone that is
# half an hour off.  recipes.pl tries those of partitions in others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

# What requires a server of its own, and the test that runs it there.
my %elsewhere = (pg_partman => 'test/t/neighbours/partman.pl');

# What no server at hand has: TimescaleDB 2.23 or later, a cluster.
my @nowhere = ('timescaledb', 'citus');

my $node = PostgreSQL::Test::Cluster->new('examples');
$node->init;

# As the pages say: before 17 feeds require it.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\ntimezone = 'Asia/Kolkata'");
$node->start;
my $version = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
my %available = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');

# What the examples take for granted.
$node->safe_psql('postgres', 'CREATE ROLE importer');

foreach my $page (pages())
{
	my @examples = examples($page) or next;
	my @run = grep {
		my $extension = $_->{extension};
		$version >= $_->{version} && !$elsewhere{$extension} && !grep({ $extension eq $_ } @nowhere) && (!$extension || $available{$extension})
	} @examples;
	my $database = lc($page =~ s/\W/_/gr);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION fast_uuid') unless grep { $_->{sql} =~ /CREATE EXTENSION (IF NOT EXISTS )?fast_uuid/ } @run;

	# In one session, as a reader would type them.
	my ($code, $out, $err) = $node->psql($database, join("\n", map { $_->{sql} } @run), on_error_stop => 1);
	is($code, 0, @run . ' of ' . @examples . " examples of $page") or diag($err);
}
$node->stop;

# No example is left out here and forgotten there.
foreach my $extension (sort keys %elsewhere)
{
	like(slurp_file($elsewhere{$extension}), qr/extension} eq '$extension'/, "$elsewhere{$extension} runs those of $extension");
}

done_testing();

# Every SQL example of the README and of doc/ runs as it is written, in a time zone that is
# half an hour off.  recipes.pl tries those of partitions in others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('examples');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'fast_uuid'\ntimezone = 'Asia/Kolkata'");
$node->start;

# README names a role.
$node->safe_psql('postgres', 'CREATE ROLE app');

my $available = $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions');

foreach my $page ('README.md', glob('doc/*.md'))
{
	my $sql = '';
	foreach my $example (examples($page))
	{
		my $extension = $example->{extension};
		next if $extension eq 'pg_partman';    # documents/partman.pl runs those
		next if $node->pg_version < $example->{version};
		next if $extension ne '' && $available !~ /^$extension$/m;
		$sql .= $example->{sql};
	}
	my $database = lc($page =~ s/\W/_/gr);
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION fast_uuid')
	  unless $sql =~ /CREATE EXTENSION (IF NOT EXISTS )?fast_uuid/;

	# In one session, as a reader would type them.
	my ($code, $out, $err) = $node->psql($database, $sql, on_error_stop => 1);
	is($code, 0, "examples of $page") or diag($err);
}
$node->stop;
done_testing();

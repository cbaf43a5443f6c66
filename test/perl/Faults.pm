# Sessions whose entropy sources fail, and log what they request, by test/modules: nothing
# in the extension helps.

package Faults;

use strict;
use warnings;

use Cwd qw(getcwd);
use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_faulty_node stop_faulty_node available_sources check_working);

# A server with the extension, and the functions of test/modules/faults.c.
sub start_faulty_node
{
	my ($name) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	# The just-in-time compiler's own memory is not what is measured.
	$node->append_conf('postgresql.conf', 'jit = off');
	my $modules = getcwd() . '/test/modules';
	{
		local $ENV{LD_PRELOAD} = "$modules/preload_faults.so";
		$node->start;
	}
	$node->safe_psql(
		'postgres', qq[
CREATE EXTENSION fast_uuid;
CREATE FUNCTION inject_fault(faults text) RETURNS bool AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION requests_made() RETURNS text AS '$modules/faults' LANGUAGE c;
CREATE FUNCTION openssl_error(queue bool) RETURNS bool AS '$modules/faults' LANGUAGE c;
]);
	return $node;
}

sub stop_faulty_node
{
	my ($node) = @_;
	unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/,
		'the server went on all the time');
	$node->stop;
	return;
}

# The names of the sources that this build has.
sub available_sources
{
	my ($node) = @_;
	return split /\n/,
	  $node->safe_psql('postgres', 'SELECT name FROM fast_uuid_sources() WHERE available');
}

# The source delivers, and bits that differ in every UUID.  Two of 128 share these 52 bits
# by chance once in 5 * 10^11 checks.
sub check_working
{
	my ($session, $source, $name) = @_;
	my $distinct = 'SELECT count(DISTINCT right(id::text, 14)) FROM'
	  . " (SELECT uuidv7_fast('$source') AS id FROM generate_series(1, 128)) AS made";
	is($session->outcome($distinct), 'value 128', $name);
	return;
}

1;

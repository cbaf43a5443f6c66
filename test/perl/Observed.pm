# A server for fast_uuid_observe(), whose UUIDs are built bit by bit.

package Observed;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use RawSession;
use Test::More;

our @EXPORT = qw($node @orders start_node session lead);

# The server, and the orders that it can have.
our ($node, @orders);
my $superuser;

sub start_node
{
	$node = PostgreSQL::Test::Cluster->new('observe');
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
	$node->start;
	$node->safe_psql(
		'postgres', q{
CREATE EXTENSION fast_uuid;

-- A version 7 UUID: milliseconds, the 20 bits in the place of the fraction, the 54 after it.
CREATE FUNCTION built(ms bigint, fraction int, rest bigint) RETURNS uuid LANGUAGE sql AS
	$$SELECT (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(fraction >> 8), 3, '0')
		|| to_hex((1::bigint << 63) | ((fraction & 255)::bigint << 54) | rest))::uuid$$;
-- One of a nanosecond since 1970, with the fraction that this extension stores.
CREATE FUNCTION built_at(ns bigint, rest bigint DEFAULT 0) RETURNS uuid LANGUAGE sql AS
	$$SELECT built(ns / 1000000, (((ns % 1000000) << 20) / 1000000)::int, rest)$$;
CREATE FUNCTION clock_ns() RETURNS bigint LANGUAGE sql VOLATILE AS
	$$SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint$$;
-- Seconds that the time of a UUID leads the clock.
CREATE FUNCTION ahead(id uuid) RETURNS int LANGUAGE sql VOLATILE AS
	$$SELECT round(extract(epoch FROM uuidv7_fast_timestamp(id, true) - clock_timestamp()))$$;
});
	$superuser = $node->safe_psql('postgres', 'SELECT current_user');
	@orders = ('session', 'instance', $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ? 'durable' : ());
	return;
}

# A session that has run these statements without an error.
sub session
{
	my ($on, @statements) = @_;
	my $session = RawSession->connect($on, user => $superuser, database => 'postgres');
	foreach my $statement (@statements)
	{
		$session->query($statement);
		is($session->{error}, '', $statement) if $session->{error} ne '';
	}
	return $session;
}

# The lead in seconds that a session sees of itself or of the instance.
sub lead
{
	my ($session, $name) = @_;
	return $session->query("SELECT round(extract(epoch FROM clock_lead)) FROM fast_uuid_stats() WHERE name = '$name'");
}

1;

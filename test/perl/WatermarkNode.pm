# Tests of the watermark: what a server says of it, and sessions under instance order
# whose transactions hold it back.

package WatermarkNode;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(*node $instance watermark stats session begin_query in_transaction);

# What chooses the order, and where the following work.
our $instance = "SET fast_uuid.ordering = 'instance'";
our $node;

sub watermark
{
	return $node->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()');
}

sub stats
{
	my ($columns) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM fast_uuid_stats() WHERE name = 'instance'");
}

sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($instance);
	return $session;
}

# The session is not waited for.
sub begin_query
{
	my ($session, $sql) = @_;
	$session->{stdin} .= "$sql;\n";
	$session->{run}->pump_nb;
	return;
}

# Begin a transaction in a session that generates a UUID, and return the UUID.
sub in_transaction
{
	my ($session, $call) = @_;
	$session->query_safe('BEGIN');
	return $session->query($call // "INSERT INTO made DEFAULT VALUES RETURNING id");
}

1;

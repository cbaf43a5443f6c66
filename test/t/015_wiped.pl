# Random bits do not stay in the backend's memory: a piece is wiped as it is
# handed out, and what is staged is wiped when a setting discards it.
#
# The test reads the library's memory in the backend and looks for the random
# bits of values.  That it can find them is shown by those of the next value,
# which are there before that is made.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('wiped');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = $node->background_psql('postgres');
my $pid     = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('SELECT uuidv7_fast()');

# The writable memory of the library: its data, and the anonymous mapping that
# follows it where the linker had more to place than the file holds.
sub library_memory
{
	my $image    = '';
	my $previous = 0;
	open(my $memory, '<:raw', "/proc/$pid/mem") or return;
	foreach my $line (split /\n/, slurp_file("/proc/$pid/maps"))
	{
		my ($start, $end, $flags, $name) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)$/;
		my $ours = $name =~ /fast_uuid\.so$/ || ($name eq '' && hex($start) == $previous);
		$previous = $ours ? hex($end) : 0;
		next unless $ours && $flags =~ /^rw/;
		my $part;
		sysseek($memory, hex($start), 0);
		defined(sysread($memory, $part, hex($end) - hex($start))) or return;
		$image .= $part;
	}
	close($memory);
	return $image;
}

# Bytes 10 to 15 of a value, as they are staged: least significant first.
sub staged_form
{
	my ($id) = @_;
	return scalar reverse pack('H*', substr($id, 24));
}

plan skip_all => 'the memory of another process cannot be read here' unless defined library_memory();

foreach my $source ('openssl', 'getrandom', 'urandom', 'xorshift128+')
{
	# A discard: the next fill is the first one again, of 8 pieces.
	$session->query_safe("SET fast_uuid.source = '$source'; SET fast_uuid.buffer_size = '1kB'; RESET fast_uuid.buffer_size");
	my $first  = $session->query_safe('SELECT uuidv7_fast()');
	my $memory = library_memory();
	my $second = $session->query_safe('SELECT uuidv7_fast()');
	my $place  = index($memory, staged_form($second));
	isnt($place, -1, "$source: the next value's bits are staged");
	is(index($memory,          staged_form($first)),  -1, "$source: those handed out are gone");
	is(index(library_memory(), staged_form($second)), -1, "$source: so are the next ones, once handed out");

	$memory = library_memory();
	$session->query_safe("SET fast_uuid.buffer_size = '1kB'; RESET fast_uuid.buffer_size");
	my $after = library_memory();
	my $third = $session->query_safe('SELECT uuidv7_fast()');
	is(index($memory, staged_form($third)), -1, "$source: bits staged under another setting are not used")
	  unless $source eq 'xorshift128+';

	# Two have been handed out, six waited behind the second.
	my @waiting = map { $place + 8 * $_ } 1 .. 6;
	is(scalar(grep { substr($memory, $_, 8) ne "\0" x 8 } @waiting), 6, "$source: more pieces were staged");
	is(scalar(grep { substr($after, $_, 8) ne "\0" x 8 } @waiting), 0,
		"$source: and are all wiped when a setting discards them");
}

$session->quit;
$node->stop;
done_testing();

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
	$session->query_safe("SET fast_uuid.source = '$source'");
	my $first  = $session->query_safe('SELECT uuidv7_fast()');
	my $memory = library_memory();
	my $second = $session->query_safe('SELECT uuidv7_fast()');
	isnt(index($memory, staged_form($second)), -1, "$source: the next value's bits are staged");
	is(index($memory,          staged_form($first)),  -1, "$source: those handed out are gone");
	is(index(library_memory(), staged_form($second)), -1, "$source: so are the next ones, once handed out");

	$memory = library_memory();
	$session->query_safe("SET fast_uuid.buffer_size = '1kB'; RESET fast_uuid.buffer_size");
	my $after = library_memory();
	my $third = $session->query_safe('SELECT uuidv7_fast()');
	is(index($memory, staged_form($third)), -1, "$source: bits staged under another setting are not used")
	  unless $source eq 'xorshift128+';

	# Of what differs, nothing but zeros may have taken the place of bits.
	my $left = 0;
	my $seen = 0;
	for (my $at = 0; $at + 8 <= length($memory); $at += 8)
	{
		my $before = substr($memory, $at, 8);
		next if $before eq substr($after, $at, 8) || ($before =~ tr/\0//) > 2;
		$seen++;
		$left++ if substr($after, $at, 8) ne "\0" x 8;
	}
	cmp_ok($seen, '>=', 4, "$source: pieces were staged");
	is($left, 0, "$source: and are wiped when a setting discards them") if $source ne 'xorshift128+';
}

$session->quit;
$node->stop;
done_testing();

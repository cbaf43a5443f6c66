# Random bits do not stay in the backend's memory: a word is wiped as it is
# handed out, and what is buffered is wiped when a setting discards it.
#
# The test reads all memory that is the backend's own (data, heap, stack, what
# is mapped for it alone) and looks for the random bits of values as they were
# delivered.  That it can find them is shown by those of the next value, which
# are there before that is made, and by a text that the server keeps.
#
# Not looked for is a value's own bits on the stack: a register that was saved
# there may hold them for a while, as other memory holds the value itself.

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
my $marker  = 'kept in memory by the server';
$session->query_safe("SET wiped.marker = '$marker'; SELECT uuidv7_fast()");

# [name, content] of each private writable mapping; nothing where it cannot be read.
sub private_memory
{
	my @parts;
	open(my $memory, '<:raw', "/proc/$pid/mem") or return;
	foreach my $line (split /\n/, slurp_file("/proc/$pid/maps"))
	{
		my ($start, $end, $name) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ \S+\s*(.*)$/ or next;
		my $size = hex($end) - hex($start);
		my $content;
		sysseek($memory, hex($start), 0);
		(sysread($memory, $content, $size) // 0) == $size or return;
		push @parts, [ $name || 'anonymous', $content ];
	}
	close($memory);
	return @parts;
}

# Bytes 10 to 15 of a value, as they are buffered: least significant first.
sub buffered_form
{
	my ($id) = @_;
	return scalar reverse pack('H*', substr($id, 24));
}

# Where any of these bytes stand in what private_memory() gave: the names of
# mappings.
sub places_of
{
	my ($memory, @wanted) = @_;
	my %places;
	foreach my $bytes (@wanted)
	{
		$places{ $_->[0] }++ foreach grep { index($_->[1], $bytes) >= 0 } @$memory;
	}
	return join ', ', sort keys %places;
}

sub without_stack
{
	return grep { $_->[0] ne '[stack]' } @_;
}

# The words behind that one, where it waits.
sub words_behind
{
	my ($memory, $word, $count) = @_;
	foreach my $content (map { $_->[1] } @$memory)
	{
		my $place = index($content, $word);
		return map { substr($content, $place + 8 * $_, 8) } 1 .. $count if $place >= 0;
	}
	return;
}

my @memory = private_memory();
if (!@memory)
{
	$session->quit;
	$node->stop;
	plan skip_all => 'the memory of another process cannot be read here';
}
foreach my $name ('[heap]', '[stack]', 'anonymous')
{
	ok(scalar(grep { $_->[0] eq $name } @memory), "$name is searched");
}
like(places_of(\@memory, $marker), qr/heap|anonymous/, 'what the server keeps is found');

# What a buffer of so many bytes holds, until a setting is changed.
sub check
{
	my ($source, $size, $change) = @_;
	my $name = "$source, buffer of $size bytes, $change";
	# The first fill is of 8 words at most; two are handed out, these wait behind them.
	my $count = ($size < 64 ? $size / 8 : 8) - 2;

	# A discard: the next fill is the first one again.
	my $discard = "SET fast_uuid.buffer_size = '1kB'; SET fast_uuid.buffer_size = $size";
	$session->query_safe("SET fast_uuid.source = '$source'; $discard");

	my $first   = $session->query_safe('SELECT uuidv7_fast()');
	my @memory  = private_memory();
	my $second  = $session->query_safe('SELECT uuidv7_fast()');
	my @buffered  = private_memory();
	my @waiting = words_behind(\@memory, buffered_form($second), $count);
	$session->query_safe("SET fast_uuid.$change");
	my @discarded = private_memory();
	my $third     = $session->query_safe('SELECT uuidv7_fast()');

	is(places_of([ without_stack(@memory) ], buffered_form($first)), '', "$name: bits handed out are gone");
	is(places_of([ without_stack(@buffered) ], buffered_form($second)), '', "$name: so are the next ones, once handed out");
	unlike(places_of(\@memory, buffered_form($second)), qr/heap|stack/, "$name: before, those are not on heap or stack");
	if ($count > 0)
	{
		isnt(places_of(\@memory, buffered_form($second)), '', "$name: but buffered");
		is(scalar(grep { places_of(\@buffered, $_) ne '' } @waiting), $count, "$name: and more wait behind them");
		unlike(places_of(\@buffered, @waiting), qr/heap|stack/, "$name: not on heap or stack");
		is(places_of(\@discarded, @waiting), '', "$name: they are wiped when a setting discards them");
		is(scalar(grep { index($_, buffered_form($third)) == 0 } @waiting), 0, "$name: and not used");
	}

	my @ids = split /\n/,
	  $session->query_safe('SELECT unnest(uuidv7_fast_array(5)) UNION ALL SELECT uuidv7_fast_set(5)'
		  . " UNION ALL SELECT uuidv7_fast(interval '1 hour') UNION ALL SELECT uuidv7_fast_at(now())");
	is(scalar(@ids), 12, "$name: twelve values of the other functions");
	is(places_of([ without_stack(private_memory()) ], map { buffered_form($_) } @ids), '', "$name: their bits are gone");
	return;
}

foreach my $source ('openssl', 'getrandom', 'urandom', 'xorshift128+')
{
	check($source, $_, 'buffer_size = 32') foreach 0, 8, 24, 4096;
	check($source, 4096, $_) foreach 'vdso = off', 'vdso = on', "allowed_sources = '$source'", 'allowed_sources = DEFAULT';
}

$session->quit;
$node->stop;
done_testing();

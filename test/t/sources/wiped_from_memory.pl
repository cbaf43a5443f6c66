# Random bits do not stay in the backend's memory: a word is wiped as it is handed out, what
# is buffered when a setting discards it, and what came before a source failed.
#
# The test reads all memory that is the backend's own (data, heap, what is mapped for it
# alone) and looks for the random bits of UUIDs as they were delivered.  That it can find
# them is shown by those of the next UUID, which are there before that is generated.
#
# Not looked at is the stack: a register that was saved there may hold a UUID's own bits
# for a while, as other memory holds the UUID itself.

use strict;
use warnings;

use Errno qw(EIO);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';
my $node = start_faulty_node('wiped');
my $session = RawSession->start($node);

# Each private writable mapping but the stack: its name and content; nothing where it
# cannot be read.
sub private_memory
{
	my @parts;
	open(my $memory, '<:raw', "/proc/$session->{pid}/mem") or return;
	foreach my $line (split /\n/, slurp_file("/proc/$session->{pid}/maps"))
	{
		my ($start, $end, $name) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ \S+\s*(.*)$/
		  or next;
		next if $name eq '[stack]';
		my $size = hex($end) - hex($start);
		my $content;
		sysseek($memory, hex($start), 0);
		(sysread($memory, $content, $size) // 0) == $size or return;
		push @parts, { start => $start, name => $name || 'anonymous', content => $content };
	}
	close($memory);
	return @parts;
}

# Bytes 10 to 15 of a UUID, as they are buffered: least significant first.
sub buffered_form
{
	my ($id) = @_;
	return scalar reverse pack('H*', substr($id, 24));
}

# The mappings in which any of these bytes stand.
sub found_in
{
	my ($memory, @wanted) = @_;
	my %names;
	foreach my $part (@$memory)
	{
		$names{ $part->{name} } = 1 if grep { index($part->{content}, $_) >= 0 } @wanted;
	}
	return join ', ', sort keys %names;
}

# The words behind one, where it waits.
sub words_behind
{
	my ($memory, $word, $count) = @_;
	foreach my $part (@$memory)
	{
		my $place = index($part->{content}, $word);
		return map { substr($part->{content}, $place + 8 * $_, 8) } 1 .. $count if $place >= 0;
	}
	return;
}

if (!private_memory())
{
	$session->quit;
	$node->stop;
	plan skip_all => 'the memory of another process cannot be read here';
}

# What a buffer of so many bytes holds, until a setting is changed.
sub check
{
	my ($source, $size, $change) = @_;
	my $name = "$source, buffer of $size bytes, $change";
	# The first fill is of 8 words at most; two are handed out, these wait behind them.
	my $count = ($size < 64 ? $size / 8 : 8) - 2;

	# What was buffered is discarded: the next fill is the first one again.
	$session->query_safe("SET fast_uuid.source = '$source'");
	$session->query_safe("SET fast_uuid.buffer_size = '$_'") foreach '1kB', $size;

	my $first    = buffered_form($session->query_safe('SELECT uuidv7_fast()'));
	my @before   = private_memory();
	my $second   = buffered_form($session->query_safe('SELECT uuidv7_fast()'));
	my @buffered = private_memory();
	$session->query_safe("SET fast_uuid.$change");
	my @discarded = private_memory();
	my $third     = buffered_form($session->query_safe('SELECT uuidv7_fast()'));

	is(found_in(\@before, $first), '', "$name: bits handed out are gone");
	is(found_in(\@buffered, $second), '', "$name: so are the next ones, once handed out");
	if ($count > 0)
	{
		my @waiting = words_behind(\@before, $second, $count);
		like(found_in(\@before, $second), qr/^(anonymous|\S+fast_uuid\.so)$/,
			"$name: before, they are in the library's memory alone");
		is(scalar(grep { found_in(\@buffered, $_) ne '' } @waiting), $count, "$name: more wait");
		is(found_in(\@discarded, @waiting), '', "$name: what a setting discards is wiped");
		is(scalar(grep { index($_, $third) == 0 } @waiting), 0, "$name: and not used");
	}

	my @ids = split /\n/, $session->query_safe(
		q{SELECT unnest(uuidv7_fast_array(10)) UNION ALL SELECT uuidv7_fast(interval '1 hour')
		  UNION ALL SELECT uuidv7_fast_at(now())});
	is(scalar(@ids), 12, "$name: twelve UUIDs of the other functions");
	my @after = private_memory();
	is(found_in(\@after, map { buffered_form($_) } @ids), '', "$name: their bits are gone");
	return;
}

my $sources = $session->query_safe('SELECT name FROM fast_uuid_sources() WHERE available');
foreach my $source (split /\n/, $sources)
{
	check($source, $_, 'buffer_size = 32') foreach 0, 8, 24, 4096;
	check($source, 4096, $_)
	  foreach 'vdso = off', 'vdso = on', "allowed_sources = '$source'", 'allowed_sources = DEFAULT',
	  "seed = '42'";
	$session->query_safe('RESET fast_uuid.seed');
}

# The device delivers three bytes into the buffer, then fails.
$session->query_safe('SET fast_uuid.allowed_sources = DEFAULT');
$session->query_safe("SET fast_uuid.source = 'urandom'");
$session->query_safe('SELECT uuidv7_fast()');
my @before = private_memory();
my $second = buffered_form($session->query_safe('SELECT uuidv7_fast()'));
my ($buffer) = grep { index($_->{content}, $second) >= 0 } @before;
my $place    = index($buffer->{content}, $second) - 8;
$session->query_safe('SET fast_uuid.vdso = off');
$session->query_safe("SELECT inject_fault('short 3,then " . EIO . "')");
is($session->outcome('SELECT uuidv7_fast()'), '58000', 'a source that fails half way');
my ($after) = grep { $_->{start} eq $buffer->{start} } private_memory();
is(unpack('H*', substr($after->{content}, $place, 64)), '0' x 128, '... leaves no bits in the buffer');

$session->quit;
$node->stop;
done_testing();

# The commands of OrderWorld.pm that generate: how each is chosen at random, and
# what is to come of it.

package OrderCalls;

use strict;
use warnings;

use OrderModel qw(max min);
use RandomHistory;

my ($us, $s) = (1000, 1_000_000_000);

my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my @counts  = (1, 2, 3, 8, 100, 255, 256, 257, 300, 512, 513, 1000);

my %shifts = ('0' => 0, '1 hour' => 3600 * $s, '-30 days' => -30 * 86400 * $s, '1 day 00:00:00.000001' => 86400 * $s + $us);

# A source for an argument: '' is none, NULL the session's.
sub choose_source
{
	my ($random) = @_;
	return one_of($random, '', '', 'NULL', map { one_of($random, $_, uc $_) } @sources);
}

# The argument, after others, and the source that is asked.
sub source_argument
{
	my ($source) = @_;
	return ('') if $source eq '';
	return (', NULL') if $source eq 'NULL';
	return (", '$source'", source => lc $source);
}

# One row for each id.
sub rows
{
	my ($count, $shown) = @_;
	return [ map { [ [ 1, 1, $shown // 1 ] ] } 1 .. $count ];
}

sub choose_single { my (undef, $random) = @_; return (choose_source($random), one_of($random, 1, 1, 1, 1, 2, 10, 300)) }

sub do_single
{
	my ($self, $session, $source, $count) = @_;
	my ($argument, @asked) = source_argument($source);
	$argument = substr $argument, 2 if $argument;
	$argument = 'NULL::text' if $argument eq 'NULL';
	my $sql = "SELECT uuidv7_fast($argument)" . ($count > 1 ? " FROM generate_series(1, $count)" : '');
	return $self->generate('single', $session, sql => $sql, rows => rows($count), @asked);
}

sub choose_shift { my (undef, $random) = @_; return (one_of($random, sort keys %shifts), choose_source($random)) }

sub do_shift
{
	my ($self, $session, $shift, $source) = @_;
	my ($argument, @asked) = source_argument($source);
	my $sql = "SELECT uuidv7_fast(interval '$shift'$argument)";
	return $self->generate('shift', $session, sql => $sql, rows => rows(1), shift => $shifts{$shift}, @asked);
}

sub choose_array { my (undef, $random) = @_; return (one_of($random, 0, @counts), choose_source($random)) }

sub do_array
{
	my ($self, $session, $count, $source) = @_;
	my ($argument, @asked) = source_argument($source);
	my $sql = "SELECT array_to_string(uuidv7_fast_array($count$argument), ' ')";
	return $self->generate('array', $session, sql => $sql, rows => $count ? [ [ [ $count, 256, 1 ] ] ] : [], @asked);
}

# Sets, and perhaps single values, side by side: the length of each set, 0 for a
# single value.
sub choose_list
{
	my (undef, $random) = @_;
	return map { one_of($random, 0, @counts, @counts) } 1 .. one_of($random, 1, 2, 2, 2, 3);
}

sub list_rows
{
	my (@lengths) = @_;
	return [ map {
		my $row = $_;
		[ [ scalar(grep { $_ == 0 || $_ >= $row } @lengths), 1, 1 ] ]
	} 1 .. max(map { $_ || 1 } @lengths) ];
}

sub list_sql
{
	my (@lengths) = @_;
	my @columns = ('x', 'y', 'z')[ 0 .. $#lengths ];
	my @calls   = map { ($lengths[$_] ? "uuidv7_fast_set($lengths[$_])" : 'uuidv7_fast()') . " AS $columns[$_]" } 0 .. $#lengths;

	# As columns of their own, because the planner makes one of two equal sets in an expression.
	return "SELECT concat_ws(' ', " . join(', ', @columns) . ') FROM (SELECT ' . join(', ', @calls) . ' OFFSET 0) AS list';
}

sub do_list
{
	my ($self, $session, @lengths) = @_;

	# The server finds that all sets have ended after it has gone through the list once more.
	my $singles = grep { $_ == 0 } @lengths;
	my @rows = (@{ list_rows(@lengths) }, $singles && $singles < @lengths ? [ [ $singles, 1, 0 ] ] : ());
	return $self->generate('list of ' . @lengths, $session, sql => list_sql(@lengths), rows => \@rows);
}

# A set of which only the first rows are wanted: in FROM it is generated all the
# same, in the target list it is not.
sub choose_limited
{
	my (undef, $random) = @_;
	return (
		one_of($random, 'FROM', 'target list'),
		one_of($random, @counts),
		one_of($random, 0, 1, 2, 10, 300),
		choose_source($random));
}

sub do_limited
{
	my ($self, $session, $where, $count, $limit, $source) = @_;
	my ($argument, @asked) = source_argument($source);
	my $rows = min($count, $limit);
	my %how =
	  $where eq 'FROM'
	  ? (sql     => "SELECT * FROM uuidv7_fast_set($count$argument) LIMIT $limit",
		 rows    => $limit ? [ [ [ $count, 1, 0 ] ] ] : [],
		 deliver => $rows)
	  : (sql => "SELECT uuidv7_fast_set($count$argument) LIMIT $limit", rows => rows($rows));
	return $self->generate("set in $where, LIMIT", $session, %how, @asked);
}

# A statement that fails after some rows.
sub choose_broken { my (undef, $random) = @_; return (one_of($random, 'single', 'set'), one_of($random, 1, 2, 5, 260)) }

sub do_broken
{
	my ($self, $session, $kind, $at) = @_;
	my $sql = $kind eq 'set'
	  ? "SELECT concat(uuidv7_fast_set(300), left('', 1 / ($at - generate_series(1, 300))))"
	  : "SELECT concat(uuidv7_fast(), left('', 1 / ($at - n))) FROM generate_series(1, 300) AS n";
	my @rows = (@{ rows($at - 1) }, @{ rows(1, 0) });
	return $self->generate("broken $kind", $session, sql => $sql, rows => \@rows, error => '22012');
}

# Generated in a subtransaction that is rolled back, as is the order it was under.
sub choose_in_vain { my (undef, $random) = @_; return one_of($random, 'session', 'instance') }

sub do_in_vain
{
	my ($self, $session, $ordering) = @_;
	my $wider = $self->in_force($session, 'required_ordering') eq 'instance' ? 'instance' : $ordering;
	return $self->generate("in vain", $session, sql => "SELECT in_vain('$ordering')", rows => rows(1), ordering => $wider);
}

# By a function that sets the order.
sub choose_in_order { my (undef, $random) = @_; return one_of($random, 'session', 'instance') }

sub do_in_order
{
	my ($self, $session, $ordering) = @_;
	my $wider = $self->in_force($session, 'required_ordering') eq 'instance' ? 'instance' : $ordering;
	return $self->generate('function', $session, sql => "SELECT in_${ordering}_order()", rows => rows(1), ordering => $wider);
}

# Outside the order.
sub choose_at { return }

sub do_at
{
	my ($self, $session) = @_;
	my $refused = $session->{state}->refuses('SELECT');
	my $id = $self->run($session, "SELECT uuidv7_fast_at('2001-02-03 04:05:06.789123Z')", $refused);
	return if $refused;
	my $ns = OrderWorld::ns_of($id) - 981_173_106_789_123_000;
	differs('at', "uuidv7_fast_at() is $ns ns off") if $ns < 0 || $ns > 999;
	$session->{order}{began} ||= 2;
	$session->{asked}{ $self->in_force($session, 'source') } = 1;
	return;
}

# A call that is refused changes nothing.
my %wrong = (
	"uuidv7_fast('typo')"          => '22023',
	'uuidv7_fast(NULL::interval)'  => '22004',
	'uuidv7_fast_array(-1)'        => '22023',
	'uuidv7_fast_array(NULL)'      => '22004',
	'uuidv7_fast_set(-1)'          => '22023',
	"uuidv7_fast_set(1, 'typo')"   => '22023');

sub choose_wrong { my (undef, $random) = @_; return one_of($random, sort keys %wrong) }

sub do_wrong
{
	my ($self, $session, $call) = @_;
	$self->run($session, "SELECT $call", $session->{state}->refuses('SELECT') || $wrong{$call});
	return;
}

# Parallel workers: under session order each is a session of its own, under that of
# the instance all are in one order.
sub choose_parallel { return }

sub do_parallel
{
	my ($self, $session) = @_;
	my $sql = 'SELECT id_and_process() FROM input';
	my $refused = $session->{state}->refuses('SELECT');
	return $self->run($session, $sql, $refused) if $refused;

	my $count = $self->{has}{input};
	my ($model, $order, $ordering) = ($self->{model}, $session->{order}, $self->ordering($session));
	my $instance = $ordering ne 'session';
	my ($clock, $result, @rows) = $self->query($session, $sql);
	my $limit = $self->in_force($session, 'max_clock_lead');
	my $beyond  = OrderModel::exceeds($model->latest($order, $ordering), $count, $clock, $limit);
	my $certain = $instance && OrderModel::exceeds($model->{instance}{last}, $count, $clock, $limit) == 1;
	$session->{state}->fail if $result;
	$session->{unknown} = 1;
	if ($result eq '55000' && $beyond)
	{
		# By whom, and after how many ids, is not told.
		$order->{entered} = 2 if $order->{entered} != 1 && $instance;
		$order->{began}   = 2 if $order->{began} != 1;
		my $most = max($clock->[1], $model->latest($order, $ordering)->[1]) + $count;
		my $largest = $order->{largest}[0];
		foreach my $scope ($order, $instance ? $model->{instance} : ())
		{
			OrderModel::look($scope, OrderModel::lead($scope->{last}, $clock));
			$scope->{last} = [ $scope->{last}[0], $most ];
		}
		$order->{last}[0] = 0 if $order->{stale};
		$order->{largest}[0] = $largest;
		return;
	}
	differs('outcome: parallel', 'parallel: ' . ($result || 'no error')) if $result || $certain;
	differs('count: parallel', 'parallel: ' . @rows . ' rows') if @rows != $count;
	my %of = ($session->{pid} => $order);
	foreach (sort @rows)
	{
		my ($id, $process) = split / /;
		my $who = $of{$process} //= $model->new_session;
		$model->arrive($who, $ordering);
		$model->look_before($who, $ordering, $clock);
		$self->reserve('parallel', $who, $ordering, $clock, 1, OrderWorld::ns_of($id));
		$self->check_order('parallel', $who, $ordering, $id);
	}
	$self->tally('parallel, ' . (keys(%of) > 1 ? 'by workers' : 'by the leader'), '');
	$model->forget_session($of{$_}) foreach grep { $_ ne $session->{pid} } keys %of;
	return;
}

# Cursors: over a set, two of them, single values, or a set in FROM, which is
# generated by the first FETCH.  That of the name h is WITH HOLD: what is left of it is
# generated when the transaction ends.
sub choose_declare
{
	my (undef, $random) = @_;
	return (
		one_of($random, 'c', 'c', 'd', 'd', 'h'),
		one_of($random, 'list', 'list', 'rows', 'FROM'),
		map { one_of($random, @counts) } 1 .. one_of($random, 1, 1, 2));
}

sub do_declare
{
	my ($self, $session, $name, $kind, @lengths) = @_;
	my $state = $session->{state};
	my $held  = $name eq 'h';
	@lengths = $lengths[0] if $held;
	my $query =
	    $kind eq 'list' ? list_sql(@lengths)
	  : $kind eq 'rows' ? "SELECT uuidv7_fast() FROM generate_series(1, $lengths[0])"
	  : "SELECT * FROM uuidv7_fast_set($lengths[0])";
	my $rows    = $kind eq 'list' ? list_rows(@lengths) : $kind eq 'rows' ? rows($lengths[0]) : [];
	my $cursor  = { kind => $kind, rows => $rows, count => $lengths[0] };
	my $sql     = "DECLARE $name NO SCROLL CURSOR " . ($held ? 'WITH HOLD ' : '') . "FOR $query";
	my $refused = $state->refuses($held ? 'SELECT' : 'DECLARE') || ($state->{owned}{$name} ? '42P03' : '');
	return $self->end_holding($session, $sql, $cursor) if !$refused && $held && $state->{status} eq 'idle';
	$self->run($session, $sql, $refused);
	$state->own($name, $cursor) unless $refused;
	return;
}

# The rows that are fetched next, or generated without being shown.
sub rows_of_cursor
{
	my ($cursor, $count, $shown) = @_;
	return if $cursor->{stored};
	return ([ [ $cursor->{count}, 1, 0 ] ]) if $cursor->{kind} eq 'FROM';
	return map { [ map { [ @$_[ 0, 1 ], $shown ] } @$_ ] } splice @{ $cursor->{rows} }, 0, $count;
}

# A statement that ends the transaction.
sub end_holding
{
	my ($self, $session, $sql, $cursor) = @_;
	my $state = $session->{state};
	my $open  = $state->{status} eq 'open';
	$cursor //= $state->{owned}{h};
	$cursor = undef if $cursor && ($cursor->{failed} || $open && $cursor->{level} < 0);
	my @stored = $self->generate(
		'WITH HOLD', $session,
		sql    => $sql,
		rows   => $cursor ? [ rows_of_cursor($cursor, 1_000_000, 0) ] : [],
		stored => $cursor && $cursor->{stored});
	my $committed = $session->{raw}{error} eq '';
	$state->end($committed) if $open;
	$state->{owned}{h} = { kind => 'held', stored => \@stored, level => -1 } if $cursor && $committed;
	return;
}

sub choose_fetch
{
	my (undef, $random, $session) = @_;
	my @there = sort keys %{ $session->{state}{owned} };
	return (
		one_of($random, 'FETCH', 'FETCH', 'FETCH', 'FETCH', 'FETCH', 'MOVE', 'CLOSE'),
		one_of($random, @there && chance($random, 95) ? @there : ('c', 'd', 'h')),
		one_of($random, 1, 1, 1, 2, 3, 255, 256, 400));
}

sub do_fetch
{
	my ($self, $session, $verb, $name, $count) = @_;
	my $state   = $session->{state};
	my $cursor  = $state->{owned}{$name};
	my $refused = $state->refuses('SELECT') || (!$cursor ? '34000' : $cursor->{failed} && $verb ne 'CLOSE' ? '55000' : '');
	if ($refused || $verb eq 'CLOSE')
	{
		$self->run($session, $verb eq 'CLOSE' ? "CLOSE $name" : "$verb $count FROM $name", $refused);
		delete $state->{owned}{$name} unless $refused;
		return;
	}
	my $shown  = $verb eq 'FETCH';
	my $stored = $cursor->{kind} =~ /FROM|held/;
	my @unseen = $self->generate(
		"cursor, $verb, $cursor->{kind}", $session,
		sql     => "$verb $count FROM $name",
		rows    => [ rows_of_cursor($cursor, $count, $shown) ],
		stored  => $cursor->{stored},
		deliver => $stored ? $count : 0,
		hidden  => !$shown);
	$cursor->{stored} = \@unseen if $stored;
	$cursor->{failed} = $state->{status} eq 'failed';
	return;
}

1;

# Sessions that generate at random under a fake clock, each answer compared with
# OrderModel.pm.  OrderCommands.pm has the commands.

package OrderWorld;

use strict;
use warnings;

use List::Util qw(sum0);
use OrderCommands;
use OrderModel qw(max min);
use RandomHistory;
use RawSession;
use SessionModel;

our @ISA = ('OrderCommands');

my $sessions = 3;
my $start    = 1_900_000_000_000_000_000;

my %default = (
	ordering          => 'session',
	required_ordering => 'session',
	max_clock_lead    => -1,
	source            => 'openssl',
	buffer_size       => 4096);

# A world on this node, which a superuser has prepared, with this clock; %has: what
# there is to be tested, beside what there always was.
sub new
{
	my ($class, $node, $clock, $user, %has) = @_;
	my $self = bless { node => $node, clock => $clock, user => $user, has => \%has, model => OrderModel->new }, $class;
	@$self{qw(sessions log seen acting)} = ([], [], {}, 0);
	$clock->put($start);
	$self->connect_session($_, $_ == 0 ? 'session' : 'instance') foreach 0 .. $sessions - 1;

	# Start from nothing.
	my $first = $self->{sessions}[0];
	$first->{raw}->query("SET fast_uuid.ordering = 'instance'; SELECT fast_uuid_reset_ordering(); RESET fast_uuid.ordering");
	return $self;
}

# A new process: it starts from nothing, under an order that it has been given, and
# in one session a limit.
sub connect_session
{
	my ($self, $number, $ordering) = @_;
	my $old = $self->{sessions}[$number];
	$self->disconnect($old) if $old;
	my $limit   = $number == 2 ? 1000 : $default{max_clock_lead};
	my @options = (
		"fast_uuid.ordering=$ordering", "fast_uuid.max_clock_lead=$limit", 'timezone=UTC',
		'parallel_setup_cost=0', 'parallel_tuple_cost=0', 'min_parallel_table_scan_size=0', 'parallel_leader_participation=' . ($number == 0 ? 'on' : 'off'));
	my $raw = RawSession->connect(
		$self->{node},
		user     => $self->{user},
		database => 'postgres',
		options  => join ' ', map { "-c $_" } @options);
	$self->{sessions}[$number] = {
		raw        => $raw,
		pid        => $raw->query('SELECT pg_backend_pid()'),
		order      => $self->{model}->new_session,
		state      => SessionModel->new,
		base       => { %default, ordering => $ordering, max_clock_lead => $limit },
		sources    => {}
	};
	return;
}

sub disconnect
{
	my ($self, $session) = @_;
	$self->{model}->forget_session($session->{order});
	$session->{raw}->quit;
	return;
}

sub close
{
	my ($self) = @_;
	$_->{raw}->quit foreach @{ $self->{sessions} };
	return;
}

sub in_force
{
	my ($self, $session, $name) = @_;
	return $session->{state}->setting($name) // $session->{base}{$name};
}

sub ordering
{
	my ($self, $session) = @_;
	return (grep { $self->in_force($session, $_) eq 'instance' } 'ordering', 'required_ordering') ? 'instance' : 'session';
}

# What was done, for who reads of a difference.
sub log
{
	my ($self, $line) = @_;
	push @{ $self->{log} }, $line;
	return;
}

# What was tried, and what came of it.
sub tally
{
	my ($self, $what, $state) = @_;
	$self->{has}{tally}{ "$what: " . ($state || 'done') }++;
	return;
}

# Run a statement; the clock meanwhile, as an interval, the SQLSTATE, or '', and its
# rows.
sub query
{
	my ($self, $session, $sql) = @_;
	my $before = $self->{clock}->now;
	my @rows  = split /\n/, $session->{raw}->query($sql);
	my $after = $self->{clock}->now;
	my $state = substr $session->{raw}{error}, 0, 5;
	my @shown = @rows > 2 ? ($rows[0], '...', $rows[-1]) : @rows;
	s/^(.{74}).*(.{36})$/$1 ... $2/ foreach @shown;
	$self->log("session $self->{acting}: $sql: @shown $state");
	return ([ min($before, $after), max($before, $after) ], $state, @rows);
}

# The same where the SQLSTATE, or '', must be the expected one; its rows.
sub run
{
	my ($self, $session, $sql, $expected) = @_;
	my (undef, $state, @rows) = $self->query($session, $sql);
	differs('outcome', "$sql: " . ($state || 'no error') . ', not ' . ($expected || 'no error')) if $state ne $expected;
	$session->{state}->fail if $state;
	return "@rows";
}

# The nanosecond of a UUID, and whether it is one of ours.
sub ns_of
{
	my ($id) = @_;
	$id =~ /^([0-9a-f]{8})-([0-9a-f]{4})-7([0-9a-f]{3})-[89ab]([0-9a-f]{3})-[0-9a-f]{12}$/
	  or differs('layout', "\"$id\" is not a UUID of version 7");
	my $fraction = hex($3) << 8 | hex(substr $id, 19, 4) >> 6 & 0xFF;
	return (hex($1) << 16 | hex($2)) * 1_000_000 + ($fraction * 1_000_000 + (1 << 20) - 1 >> 20);
}

# How much too far a time is: other reasons have other sizes.
sub size_of
{
	my ($ns) = @_;
	return $ns < 1_000_000 ? 'by nanoseconds' : 'by more than a millisecond';
}

# A reservation: what is next, and what came of it, if that can be told (@ns).
# Returns the first nanosecond, as an interval.
sub reserve
{
	my ($self, $what, $session, $ordering, $clock, $count, @ns) = @_;
	my $model = $self->{model};
	my $first = OrderModel::next_of($model->latest($session, $ordering), $clock);
	if (@ns)
	{
		my ($ahead, $behind) = ($ns[0] - $first->[1], $first->[0] - $ns[0]);
		my $wrong = "$what: nanosecond $ns[0] is %s " . OrderModel::span($first);
		disagrees('ahead ' . size_of($ahead) . " in $ordering order: $what", sprintf $wrong, 'later than') if $ahead > 0;
		disagrees('behind ' . size_of($behind) . " in $ordering order: $what", sprintf $wrong, 'before') if $behind > 0;
		$ns[$_] == $ns[0] + $_ or differs("apart: $what", "$what: nanosecond $ns[$_] is not $_ after $ns[0]") foreach 1 .. $#ns;
		$first = [ ($ns[0]) x 2 ];
	}
	$model->reserve($session, $ordering, $first, $count);
	return $first;
}

# Each of these ids, in the order in which they were generated, is greater than all
# before, and new.
sub check_order
{
	my ($self, $what, $session, $ordering, @ids) = @_;
	foreach my $scope ($session, $ordering eq 'session' ? () : $self->{model}{instance})
	{
		foreach my $id (@ids)
		{
			differs("order: $what", "$what: $id after $scope->{above}") if $id le $scope->{above};
			$scope->{above} = $id;
		}
	}
	$self->{seen}{$_}++ and differs("duplicate: $what", "$what: $_ again") foreach @ids;
	return;
}

# A statement that generates.  Each of its rows is a reference to calls, an array of
# [ids, ids of one reservation, shown]: a row is shown where all of its calls could
# be carried out.
#   sql, rows, ordering (if not that of the session), error (that the statement ends
#   with), shift (nanoseconds).
# Returns the nanosecond of each id that was not shown, as an interval.
sub generate
{
	my ($self, $what, $session, %how) = @_;
	my ($state, $order, $model) = ($session->{state}, $session->{order}, $self->{model});
	if (my $refused = $state->refuses('SELECT'))
	{
		$self->run($session, $how{sql}, $refused);
		return;
	}
	my $ordering = $how{ordering} // $self->ordering($session);
	my $limit    = $self->in_force($session, 'max_clock_lead');
	my $entered  = $order->{entered};

	my ($clock, $result, @rows) = $self->query($session, $how{sql});
	my @later = $how{deliver} && !$result ? splice @rows : ();

	$model->arrive($order, $ordering) if @{ $how{rows} };
	my ($refused, $generated, @unseen) = (0, 0, @{ $how{stored} // [] });
  ROW: foreach my $row (@{ $how{rows} })
	{
		my $shows = sum0(map { $_->[2] ? $_->[0] : 0 } @$row);
		my @ids   = $shows && @rows ? split / /, shift @rows : ();
		@ids = sort { $a cmp $b } @ids if @ids > 1 && $row->[0][1] == 1;
		differs("count: $what", "$what: " . @ids . " ids, not $shows, in a row") if @ids && @ids != $shows;
		my @ns    = map { ns_of($_) - ($how{shift} // 0) } @ids;
		my $fails = $result eq '55000' && $shows && !@ids;
		my $least = $model->latest($order, $ordering)->[0];
		$self->check_order($what, $order, $ordering, @ids) unless $how{shift};

		$session->{first_ns} //= $ns[0] if $ordering ne 'session' && @ns && $state->{status} eq 'open';
		foreach my $call (@$row)
		{
			my ($count, $chunk, $shown) = @$call;
			for (my $left = $count; $left > 0; $left -= $chunk)
			{
				my $size    = min($chunk, $left);
				my $exceeds = OrderModel::exceeds($model->latest($order, $ordering), $size, $clock, $limit);
				$model->look_before($order, $ordering, $clock);
				differs("limit: $what", "$what: an id beyond the limit") if $exceeds == 1 && @ids;
				if ($exceeds == 1 || $exceeds && ($fails || $result eq '55000' && !$shows))
				{
					$refused = 1;
					my $last = $model->latest($order, $ordering);
					if (@$row > 1 || $count > $chunk)
					{
						# What of this row was generated before is not told.
						my $most = sum0 map { $_->[0] } @$row;
						$_->{last} = [ min($least, $_->{last}[0]), $last->[1] + $most ]
						  foreach $order, $ordering eq 'session' ? () : $model->{instance};
					}
					last ROW;
				}
				my $first = $self->reserve($what, $order, $ordering, $clock, $size, $shown && @ns ? splice(@ns, 0, $size) : ());
				push @unseen, map { my $n = $_; [ map { $_ + $n } @$first ] } 0 .. $size - 1 if !$shown;
				$generated += $size;
			}
		}
		differs("outcome: $what", "$what: $result, where an id should be") if $shows && !@ids;
	}
	$order->{entered} = 2 if $refused && !$generated && $entered != 1 && $ordering ne 'session';
	differs("count: $what", "$what: more rows than should be") if @rows;
	if ($how{deliver} && !$refused)
	{
		my @due = splice @unseen, 0, $how{deliver};
		$self->check_delivered($what, $how{hidden} ? [] : \@due, @later);
	}
	my $expected = $refused ? '55000' : $how{error} // '';
	differs("outcome: $what", "$what: " . ($result || 'no error') . ', not ' . ($expected || 'no error')) if $result ne $expected;
	$state->fail if $result;
	$self->tally($what, $result);
	$session->{asked}{ $how{source} // $self->in_force($session, 'source') } = $refused || $how{error} ? undef : $generated;
	return @unseen;
}

# Rows that were generated before, when their nanoseconds were known to lie within
# these intervals.
sub check_delivered
{
	my ($self, $what, $due, @ids) = @_;
	differs("count: $what", "$what: " . @ids . ' rows, not ' . @$due) if @ids != @$due;
	foreach my $n (0 .. $#ids)
	{
		my $ns = ns_of($ids[$n]);
		disagrees("stored: $what", "$what: nanosecond $ns is not " . OrderModel::span($due->[$n]))
		  if $ns < $due->[$n][0] || $ns > $due->[$n][1];
		differs("order: $what", "$what: $ids[$n] after $ids[$n - 1]") if $n && $ids[$n] le $ids[ $n - 1 ];
	}
	return;
}

# fast_uuid_stats() of a session: its row of the instance, that of the session, and
# the refills of each source.
sub stats
{
	my ($self, $session) = @_;
	my $rows = $session->{raw}->query(
		q{SELECT concat_ws(' ', name, refills, (extract(epoch FROM clock_lead) * 1000000)::bigint,
			(extract(epoch FROM largest_clock_lead) * 1000000)::bigint) FROM fast_uuid_stats()});
	my (%order, %refills);
	foreach (split /\n/, $rows)
	{
		my ($name, @figures) = split / /;
		@{ $order{$name} }{qw(clock_lead largest_clock_lead)} = @figures if @figures == 2;
		$refills{$name} = $figures[0] if @figures == 1;
	}
	return (@order{qw(instance session)}, \%refills);
}

# What the statistics of a session say, compared with the model.
sub check_stats
{
	my ($self, $session) = @_;
	my $asked = delete $session->{asked};
	if ($session->{state}{status} eq 'failed')
	{
		$session->{unknown} = 1 if $asked;
		return;
	}
	my $model = $self->{model};
	my $before = $self->{clock}->now;
	my ($all, $own, $refills) = $self->stats($session);
	my $after  = $self->{clock}->now;
	my $clock  = [ min($before, $after), max($before, $after) ];
	foreach ([ 'session', $own, $session->{order} ], [ 'instance', $all, $model->{instance} ])
	{
		my ($name, $row, $scope) = @$_;
		my $wrong = $model->wrong_stats($scope, $clock, @$row{qw(clock_lead largest_clock_lead)});
		disagrees('statistics: ' . $wrong =~ s/ .*//r . " $name", "fast_uuid_stats(), $name: $wrong") if $wrong;
	}

	# Only the sources that were asked have delivered; without a buffer once per id.
	foreach my $source (sort keys %$refills)
	{
		my $more = $refills->{$source} - ($session->{sources}{$source} // 0);
		my $ids  = exists $asked->{$source} ? $asked->{$source} : 0;
		$ids = undef if $session->{unknown} || $ids && $self->in_force($session, 'buffer_size') >= 16;
		disagrees('source', "$source was asked $more times for $ids ids") if defined $ids && $more != $ids;
		$session->{sources}{$source} = $refills->{$source};
	}
	$session->{unknown} = 0;
	return;
}

1;

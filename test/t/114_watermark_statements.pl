# In which statements uuidv7_fast_watermark() is refused, because they read a table with
# an older snapshot, and in which it is not, because they only write: through views,
# partitions, children and rules as well.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('statements');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (id uuid DEFAULT uuidv7_fast());
CREATE TABLE progress (upto uuid, n int DEFAULT 1);
CREATE VIEW one AS SELECT * FROM progress;
CREATE VIEW two AS SELECT * FROM one;
CREATE VIEW checked AS SELECT * FROM two WHERE n > 0 WITH CHECK OPTION;
CREATE TABLE parted (upto uuid, n int) PARTITION BY LIST (n);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE VIEW of_parted AS SELECT * FROM parted;
CREATE TABLE parent (upto uuid, n int);
CREATE TABLE child () INHERITS (parent);
CREATE VIEW of_parent AS SELECT * FROM parent;
CREATE TABLE ruled (upto uuid);
CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO progress VALUES (NEW.upto);
CREATE VIEW by_trigger AS SELECT upto FROM progress;
CREATE FUNCTION by_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER instead INSTEAD OF INSERT ON by_trigger FOR EACH ROW EXECUTE FUNCTION by_trigger();
CREATE VIEW watermark AS SELECT uuidv7_fast_watermark() AS upto;
CREATE VIEW from_watermark AS SELECT upto FROM uuidv7_fast_watermark() AS upto;
CREATE DOMAIN bound AS uuid CHECK (VALUE <= uuidv7_fast_watermark());
});
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

sub outcome
{
	my ($sql) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY terse\n$sql");
	return $code == 0 ? 'allowed' : $err =~ /cannot be called in a statement that reads a table/ ? 'refused' : $err;
}

my @written = ('progress', 'one', 'two', 'checked', 'parted', 'of_parted', 'parent', 'of_parent');
my @writes  = map {
	(   "INSERT INTO $_ VALUES (uuidv7_fast_watermark(), 1)",
		"INSERT INTO $_ SELECT uuidv7_fast_watermark(), 1",
		"UPDATE $_ SET n = n WHERE upto < uuidv7_fast_watermark()",
		"UPDATE $_ SET upto = uuidv7_fast_watermark() WHERE n = 1",
		"UPDATE $_ SET upto = (SELECT upto FROM watermark)",
		"UPDATE $_ SET upto = uuidv7_fast_watermark() WHERE upto = (SELECT uuidv7_fast_min(now()))",
		"INSERT INTO $_ VALUES (uuidv7_fast_watermark(), 1) RETURNING true",
		"DELETE FROM $_ WHERE upto < uuidv7_fast_watermark()",
		"DELETE FROM $_ WHERE upto < (SELECT uuidv7_fast_watermark())",
		"WITH gone AS (DELETE FROM $_ WHERE n = 1 RETURNING n) INSERT INTO progress SELECT uuidv7_fast_watermark(), n FROM gone",
		"MERGE INTO $_ AS w USING (SELECT uuidv7_fast_watermark() AS upto) AS s ON w.upto < uuidv7_fast_watermark() WHEN MATCHED THEN DELETE")
} @written;

# MERGE into a view is from 17 on.
@writes = grep { !/^MERGE INTO (?:one|two|checked|of_\w+) / } @writes if $version < 170000;
is(outcome($_), 'allowed', $_) foreach @writes,
  'INSERT INTO ruled VALUES (uuidv7_fast_watermark())',
  'INSERT INTO by_trigger VALUES (uuidv7_fast_watermark())',
  'SELECT uuidv7_fast_watermark()', 'SELECT * FROM uuidv7_fast_watermark()', 'SELECT * FROM watermark', 'SELECT * FROM from_watermark',
  'SELECT uuidv7_fast_watermark() FROM generate_series(1, 3)',
  'SELECT upto FROM uuidv7_fast_watermark() AS upto UNION ALL SELECT uuidv7_fast_watermark()',
  'VALUES (uuidv7_fast_watermark())', "SELECT '00000000-0000-0000-0000-000000000000'::bound",
  'DO $$ DECLARE w uuid := uuidv7_fast_watermark(); BEGIN PERFORM count(*) FROM made WHERE id < w; END $$',
  "PREPARE p (uuid) AS SELECT count(*) FROM made WHERE id < \$1; EXECUTE p ('00000000-0000-0000-0000-000000000000')",
  'CREATE TABLE by_default (n int, upto uuid DEFAULT uuidv7_fast_watermark()); INSERT INTO by_default VALUES (1)',
  'ALTER TABLE progress ADD COLUMN later uuid DEFAULT uuidv7_fast_watermark()',
  "ALTER TABLE by_default ALTER COLUMN upto TYPE uuid USING uuidv7_fast_watermark()",
  "COPY by_default (n) FROM PROGRAM 'echo 2'";

is(outcome($_), 'refused', $_) foreach
  'SELECT made.* FROM made, (SELECT * FROM uuidv7_fast_watermark() AS upto) AS w WHERE id < upto',
  'SELECT made.* FROM made, from_watermark WHERE id < upto',
  'SELECT upto FROM uuidv7_fast_watermark() AS upto UNION ALL SELECT id FROM made',
  'SELECT * FROM (SELECT upto FROM uuidv7_fast_watermark() AS upto UNION ALL SELECT id FROM made) AS s',
  'SELECT made.* FROM made, LATERAL (SELECT * FROM uuidv7_fast_watermark() AS upto WHERE id IS NOT NULL) AS w WHERE id < upto',
  'SELECT made.* FROM made, (VALUES (uuidv7_fast_watermark())) AS w (upto) WHERE id < upto',
  'SELECT made.* FROM made WHERE id < (SELECT upto FROM uuidv7_fast_watermark() AS upto)',
  'SELECT made.* FROM made WHERE id < (SELECT upto FROM (SELECT * FROM uuidv7_fast_watermark() AS upto) AS w)',
  'WITH w AS MATERIALIZED (SELECT uuidv7_fast_watermark() AS upto) SELECT made.* FROM made, w WHERE id < upto',
  'WITH w AS (SELECT * FROM uuidv7_fast_watermark() AS upto) SELECT made.* FROM made, w WHERE id < upto',
  'SELECT (SELECT (SELECT count(*) FROM made)), (SELECT (SELECT uuidv7_fast_watermark()))',
  'SELECT (SELECT count(*) FROM made) FROM uuidv7_fast_watermark()',
  'SELECT 1 WHERE EXISTS (SELECT FROM made) AND uuidv7_fast_watermark() IS NOT NULL',
  'SELECT 1 GROUP BY GROUPING SETS ((), (1)) HAVING (SELECT count(*) FROM made) > 0 AND uuidv7_fast_watermark() IS NOT NULL',
  'SELECT count(*) FROM made UNION SELECT 1 WHERE uuidv7_fast_watermark() IS NOT NULL',
  'SELECT max(id::text) FROM made HAVING uuidv7_fast_watermark() IS NOT NULL',
  'SELECT 1 ORDER BY (SELECT count(*) FROM made), uuidv7_fast_watermark()',
  'SELECT uuidv7_fast_watermark() LIMIT (SELECT count(*) FROM made)',
  'SELECT uuidv7_fast_watermark() FROM (SELECT id FROM made UNION ALL SELECT id FROM made) AS s',
  (map { "SELECT 1 FROM $_ WHERE upto < uuidv7_fast_watermark()" } @written),
  'UPDATE two SET upto = (SELECT uuidv7_fast_watermark()) FROM checked WHERE checked.n = two.n',
  'DELETE FROM of_parted WHERE upto < uuidv7_fast_watermark() AND EXISTS (SELECT FROM checked)',
  'INSERT INTO two SELECT uuidv7_fast_watermark(), n FROM checked',
  'INSERT INTO two VALUES (uuidv7_fast_watermark(), (SELECT count(*) FROM made))',
  'SELECT (SELECT count(*) FROM made) WHERE uuidv7_fast_watermark() IS NOT NULL',
  'SELECT (SELECT count(*) FROM made WHERE id < upto) FROM (SELECT uuidv7_fast_watermark() AS upto OFFSET 0) AS w',
  'INSERT INTO one SELECT id FROM made WHERE id < uuidv7_fast_watermark()',
  'UPDATE one SET upto = uuidv7_fast_watermark() FROM made WHERE id = upto',
  'INSERT INTO one VALUES (uuidv7_fast_watermark()) RETURNING (SELECT count(*) FROM made)';

# The default was evaluated, not only let pass.
is($node->safe_psql('postgres', q{
INSERT INTO progress SELECT uuidv7_fast_watermark();
ALTER TABLE progress ADD COLUMN since uuid DEFAULT uuidv7_fast_watermark();
SELECT count(*) > 0 AND bool_and(since IS NOT NULL) FROM progress}), 't', 'a column with the watermark as its default: filled');
$node->stop;
done_testing();

-- All that must be the same before and after: every row and where it is, every
-- expression that calls the extension.
SET timezone = 'UTC';
SELECT 'item', id, n, made FROM item ORDER BY id;
SELECT tableoid::regclass, id, n FROM event ORDER BY id;
SELECT relname, pg_get_expr(relpartbound, oid)
  FROM pg_class WHERE relpartbound IS NOT NULL ORDER BY relname;
SELECT adrelid::regclass::text, adnum, pg_get_expr(adbin, adrelid)
  FROM pg_attrdef WHERE adrelid IN ('item'::regclass, 'event'::regclass) ORDER BY 1, 2;
SELECT indexdef FROM pg_indexes WHERE tablename IN ('item', 'event') ORDER BY indexdef;
SELECT pg_get_constraintdef(oid)
  FROM pg_constraint WHERE conrelid = 'item'::regclass AND contype IN ('c', 'p') ORDER BY conname;
SELECT extname, extversion FROM pg_extension WHERE extname IN ('fast_feed', 'fast_uuid') ORDER BY extname;
SELECT 'outbox', id FROM outbox ORDER BY id;
SELECT tgname, tgenabled, pg_get_triggerdef(t.oid), (SELECT deptype FROM pg_depend WHERE objid = t.oid AND refobjid = e.oid)
  FROM pg_trigger AS t, pg_extension AS e WHERE tgrelid = 'outbox'::regclass AND extname = 'fast_feed' ORDER BY 1;

\dx+ fast_feed
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
INSERT INTO outbox (body) VALUES ('a');
SELECT fast_feed.enable('outbox','id');
\d outbox
INSERT INTO outbox(body) VALUES ('b') RETURNING id;
SELECT * FROM outbox WHERE id > 0 AND id < fast_feed.watermark('outbox') ORDER BY id;
BEGIN; INSERT INTO outbox(body) VALUES ('c') RETURNING id; SELECT * FROM fast_feed.holders(); SELECT fast_feed.watermark('outbox'); PREPARE TRANSACTION 'p1';
SELECT * FROM fast_feed.holders(); SELECT fast_feed.watermark('outbox');
INSERT INTO outbox(body) VALUES ('d') RETURNING id;
SELECT fast_feed.watermark('outbox');
COMMIT PREPARED 'p1';
SELECT fast_feed.watermark('outbox');
INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES (100,'x');
INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES (1,'x');
UPDATE outbox SET id = DEFAULT WHERE id=1;
UPDATE outbox SET body = 'z' WHERE id=2;
SELECT fast_feed.wait(0);
SELECT setval('outbox_id_seq', 2);
INSERT INTO outbox(body) VALUES ('back');
SELECT fast_feed.watermark('outbox');
ALTER SEQUENCE outbox_id_seq RESTART WITH 10;
INSERT INTO outbox(body) VALUES ('again') RETURNING id;
SELECT fast_feed.watermark('outbox');
SELECT fast_feed.disable('outbox');
SELECT fast_feed.watermark('outbox');
\d outbox
CREATE TABLE plain(x int); SELECT fast_feed.enable('plain','id');
DROP EXTENSION fast_feed;

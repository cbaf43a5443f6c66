-- The table of the examples with psycopg, JDBC, node-postgres and pgx.
CREATE EXTENSION IF NOT EXISTS fast_uuid;
CREATE TABLE item (
  id   uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  name text NOT NULL
);

-- The table of the examples in python, java, javascript and go.
CREATE EXTENSION IF NOT EXISTS fast_uuid;
CREATE TABLE item (
  id   uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  name text NOT NULL
);

// Delivers the rows of a table in the order of their positions, each at least once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	table = "event"
	group = "mail"
	batch = 100
)

var receiver = os.Getenv("RECEIVER")

// As a string, because many receivers take JSON's numbers as floating point.
type row struct {
	Position int64           `json:"position,string"`
	Payload  json.RawMessage `json:"payload"`
}

// Replace this. If it returns an error, the same rows come again.
func deliver(rows []row) error {
	body, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	client := http.Client{
		Timeout: 30 * time.Second,
		// A redirect is an error: it would be followed by GET, without the rows.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Post(receiver, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	// Otherwise its connection is not used again.
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("the receiver has answered %s", response.Status)
	}
	return nil
}

// Delivers the rows after the group's position, and returns how many there were.
func nextBatch(ctx context.Context, conn *pgx.Conn) (delivered int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Another consumer of the group waits here until this one has committed.
		var readUpTo int64
		err := tx.QueryRow(ctx,
			"SELECT read_up_to FROM event_reader WHERE name = $1 FOR UPDATE", group,
		).Scan(&readUpTo)
		if err != nil {
			return err
		}
		found, err := tx.Query(ctx,
			"SELECT position, payload FROM "+table+" WHERE position > $1"+
				" AND position < uuidv7_feed_position_watermark() ORDER BY position LIMIT $2",
			readUpTo, batch)
		if err != nil {
			return err
		}
		rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := deliver(rows); err != nil {
			return err
		}
		delivered = len(rows)
		_, err = tx.Exec(ctx, "UPDATE event_reader SET read_up_to = $1 WHERE name = $2",
			rows[delivered-1].Position, group)
		return err
	})
	return delivered, err
}

func consume(stopping context.Context) error {
	// SIGTERM ends no statement, so that a batch that was delivered is stored.
	ctx := context.Background()
	// JSON is UTF-8, whatever encoding the database has.
	conn, err := pgx.Connect(ctx, "client_encoding=UTF8")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	// uuidv7_feed_wait() refuses a higher level, and a timeout would end it.
	_, err = conn.Exec(ctx,
		"SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "INSERT INTO event_reader VALUES ($1, 0) ON CONFLICT DO NOTHING", group)
	var seen int64
	var delivered int
	for err == nil && stopping.Err() == nil {
		delivered, err = nextBatch(ctx, conn)
		if err == nil && delivered == 0 {
			// Outside of a transaction; for a second at most, because SIGTERM does not end it
			err = conn.QueryRow(ctx, "SELECT uuidv7_feed_wait($1, '1 s')", seen).Scan(&seen)
		}
	}
	return err
}

func main() {
	if receiver == "" {
		log.Fatal("RECEIVER must be the URL to post to")
	}
	stopping, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopping.Err() == nil {
		// Of the connection or the delivery: nothing was stored.
		if err := consume(stopping); err != nil {
			log.Print("The batch is tried again, on a new connection: ", err)
			time.Sleep(time.Second)
		}
	}
}

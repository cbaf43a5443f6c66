// Delivers the rows of a table in the order of their numbers, each at least once.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	name  = "mail"
	batch = 100

	read = `
		SELECT id, payload FROM event
		 WHERE id > $1 AND id < fast_feed.watermark('event') ORDER BY id LIMIT $2`
	// Not where somebody has changed the position meanwhile.
	store = "UPDATE event_consumer SET position = $1 WHERE name = $2 AND position = $3"
	// For a second at most, because SIGTERM does not end it
	wait = "SELECT fast_feed.wait($1, '1 s')"
)

var said string

type row struct {
	ID      int64           `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

// Replace this. If it returns an error, the same rows come again.
func deliver(place string, rows []row) error {
	body, err := json.Marshal(map[string]any{"place": place, "rows": rows})
	if err != nil {
		return err
	}
	client := http.Client{
		Timeout: 30 * time.Second,
		// A redirect is an error: it would be followed by GET, without the rows.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	receiver := os.Getenv("RECEIVER")
	if receiver == "" {
		receiver = "http://127.0.0.1:8080/"
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

// Delivers the rows after the position, and returns how many there were.
func nextBatch(ctx context.Context, conn *pgx.Conn, place string) (int, error) {
	var position int64
	err := conn.QueryRow(ctx, "SELECT position FROM event_consumer WHERE name = $1", name).Scan(&position)
	if err != nil {
		return 0, err
	}
	found, _ := conn.Query(ctx, read, position, batch)
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if err := deliver(place, rows); err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, store, rows[len(rows)-1].ID, name, position)
	return len(rows), err
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
	var place string
	if err := conn.QueryRow(ctx, "SELECT event_consume($1)", name).Scan(&place); err != nil {
		return err
	}
	for seen := int64(0); stopping.Err() == nil; {
		delivered, err := nextBatch(ctx, conn, place)
		if err != nil {
			return err
		}
		say("at work")
		if delivered < batch {
			if err := conn.QueryRow(ctx, wait, seen).Scan(&seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// Not again each second.
func say(line string) {
	if line != said {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, line)
	}
	said = line
}

func main() {
	stopping, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopping.Err() == nil {
		// Of the connection or the delivery: the position is as it was.
		if err := consume(stopping); err != nil {
			say("tries again each second: " + strings.SplitN(err.Error(), "\n", 2)[0])
			time.Sleep(time.Second)
		}
	}
}

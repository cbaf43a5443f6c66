// Inserts rows with pgx; their ids come from DEFAULT uuidv7_fast().
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)

	for _, name := range []string{"first", "second", "third"} {
		var id uuid.UUID
		var serverTime time.Time
		err := conn.QueryRow(ctx,
			"INSERT INTO item (name) VALUES ($1) RETURNING id, uuidv7_fast_timestamp(id)", name,
		).Scan(&id, &serverTime)
		if err != nil {
			log.Fatal(err)
		}

		idTime := time.Unix(id.Time().UnixTime())
		fmt.Printf("%s version %d, time %s, server %s, now %s\n",
			id, id.Version(), format(idTime), format(serverTime), format(time.Now()))
	}
}

func format(t time.Time) string {
	return t.Format(time.RFC3339Nano)
}

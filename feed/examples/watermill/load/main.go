// A load on Watermill's SQL Pub/Sub, for feed/bench/stores.py, with the arguments and the output of
// feed/bench/load.py
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	fastfeed "example.com/fastfeed"
)

const topic = "messages"

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// polls takes each poll that has found nothing, if somebody waits for it.
type polls chan struct{}

func (p polls) HandleError(_ watermill.LoggerAdapter, empty bool, err error) time.Duration {
	if err != nil {
		log.Print(err)
	}
	if empty {
		select {
		case p <- struct{}{}:
		default:
		}
		return time.Millisecond
	}
	return 0
}

func main() {
	var numbers [4]int
	for i := range numbers {
		var err error
		numbers[i], err = strconv.Atoi(os.Args[3+i])
		check(err)
	}
	writers, seconds, rate, reader := numbers[0], numbers[1], numbers[2], numbers[3]
	var schema sql.SchemaAdapter = sql.DefaultPostgreSQLSchema{}
	var offsets sql.OffsetsAdapter = sql.DefaultPostgreSQLOffsetsAdapter{}
	if os.Args[2] == "fast_feed" {
		schema, offsets = fastfeed.Schema{}, fastfeed.Offsets{}
	}
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(fmt.Sprintf("pool_max_conns=%d", writers+4))
	check(err)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	db, empty := sql.BeginnerFromPgx(pool), make(polls)
	publisher, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: schema}, nil)
	check(err)
	subscriber, err := sql.NewSubscriber(db, sql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: offsets, BackoffManager: empty}, nil)
	check(err)
	check(subscriber.SubscribeInitialize(topic))

	var lock sync.Mutex
	read, appended := []string{}, [][3]any{}
	if reader == 1 {
		messages, err := subscriber.Subscribe(ctx, topic)
		check(err)
		go func() {
			for m := range messages {
				lock.Lock()
				read = append(read, m.UUID)
				lock.Unlock()
				m.Ack()
			}
		}()
	}
	var group sync.WaitGroup
	started := time.Now()
	for writer := range writers {
		group.Add(1)
		go func() {
			defer group.Done()
			own := [][3]any{}
			for n := 0; ; n++ {
				if rate > 0 {
					time.Sleep(time.Until(started.Add(time.Second * time.Duration(n) / time.Duration(rate))))
				}
				begin, uuid := time.Since(started).Seconds(), fmt.Sprintf("%d-%d", writer, n)
				if rate > 0 && n == rate*seconds || rate == 0 && begin >= float64(seconds) {
					break
				}
				err := publisher.Publish(topic, message.NewMessage(uuid, []byte("{}")))
				if err == nil {
					own = append(own, [3]any{uuid, begin, time.Since(started).Seconds()})
				} else if !strings.Contains(err.Error(), "rolled back") { // by stores.py
					log.Fatal(err)
				}
			}
			lock.Lock()
			appended = append(appended, own...)
			lock.Unlock()
		}()
	}
	group.Wait()
	for range 2 * reader { // the first can have begun before
		<-empty
	}
	lock.Lock()
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"appended": appended, "read": read}))
}

// A worker in Go that writes receipts of orders, in the transactions that complete their messages.
//
//	go mod init receipts && go get github.com/jackc/pgx/v5 && DATABASE_URL=postgres://... go run .
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	pool, err := pgxpool.New(stop, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	w := &worker{pool: pool, name: fmt.Sprintf("go-%d", os.Getpid())}
	w.run(stop)
	log.Print("stopped")
}

// handle does the work. Its context ends if the lease is lost or the worker ends.
func (w *worker) handle(ctx context.Context, m *message) error {
	var order struct{ Order *int64 }
	if err := json.Unmarshal(m.content, &order); err != nil || order.Order == nil {
		return fmt.Errorf("%w: not an order: %v", errBury, err)
	}
	// The change and the completion are committed together, so a message that is delivered twice changes nothing twice.
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(ctx, "insert into receipt (order_id, attempt) values ($1, $2)", *order.Order, m.attempt)
	if err != nil {
		return err
	}
	var outcome string
	completed := tx.QueryRow(ctx, "select outcome from lonnymq.message_complete($1, $2)", []int64{m.id}, []int64{m.token})
	err = completed.Scan(&outcome)
	if err != nil {
		return err
	}
	if outcome != "completed" {
		return errLeaseLost
	}
	return tx.Commit(ctx)
}

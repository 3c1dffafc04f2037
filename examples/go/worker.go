package main

import (
	"context"
	"errors"
	"log"
	"math/rand"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	concurrency = 4
	lease       = 30 * time.Second
	callTimeout = 10 * time.Second
	shutdown    = 20 * time.Second
)

// errBury: never try this message again. errLeaseLost: another worker may be processing the message.
var errBury, errLeaseLost = errors.New("bury"), errors.New("the lease is lost")

type message struct {
	id, token int64
	channel   string
	attempt   int32
	content   []byte
	headers   map[string]string
}

type worker struct {
	pool *pgxpool.Pool
	name string
}

func (w *worker) run(stop context.Context) {
	var running sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	// Outlives stop, for the messages in progress.
	work, abandon := context.WithCancel(context.Background())
	defer abandon()
	sleeper := &sleeper{worker: w}
	for stop.Err() == nil {
		select {
		case <-stop.Done():
		case slots <- struct{}{}:
			<-slots
			messages, outcome, wait := w.dequeue(concurrency - len(slots))
			for _, m := range messages {
				slots <- struct{}{}
				running.Add(1)
				go func(m *message) {
					defer func() { <-slots; running.Done() }()
					w.attempt(work, m)
				}(m)
			}
			switch outcome {
			case "empty":
				sleeper.wait(stop, wait)
			case "busy":
				pause(stop, time.Duration(rand.Intn(20)+1)*time.Millisecond)
			case "failed":
				pause(stop, time.Second)
			}
		}
	}
	sleeper.close()
	// What still runs at the deadline is given back, which costs no attempt.
	deadline := time.AfterFunc(shutdown, abandon)
	defer deadline.Stop()
	running.Wait()
}

func (w *worker) dequeue(limit int) (messages []*message, outcome string, wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	rows, err := w.pool.Query(ctx, `select outcome, coalesce(wait_ms, 0), coalesce(message_id, 0), coalesce(token, 0),
		coalesce(channel, ''), coalesce(attempt, 0), content, headers
		from lonnymq.message_dequeue($1, $2, $3, p_is_durable => false)`, limit, lease.Milliseconds(), w.name)
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			var waitMs int64
			m := &message{}
			err = rows.Scan(&outcome, &waitMs, &m.id, &m.token, &m.channel, &m.attempt, &m.content, &m.headers)
			if err != nil {
				break
			}
			wait = time.Duration(waitMs) * time.Millisecond
			if outcome == "leased" {
				messages = append(messages, m)
			}
		}
		if err == nil {
			err = rows.Err()
		}
	}
	if err != nil {
		log.Printf("dequeue: %v", err)
		// Leases of messages that were not read expire.
		return messages, "failed", 0
	}
	return messages, outcome, wait
}

// attempt runs the handler while another goroutine extends the lease.
func (w *worker) attempt(work context.Context, m *message) {
	ctx, lost := context.WithCancel(work)
	defer lost()
	go w.heartbeat(ctx, lost, m)
	err := w.read(ctx, m)
	if err == nil {
		err = w.handle(ctx, m)
	}
	switch {
	case err == nil:
		// The handler has completed it. If yours does not: w.end(m, "message_complete($1, $2)")
	case work.Err() != nil:
		w.end(m, "message_give_back($1, $2)")
	case errors.Is(err, errBury):
		w.end(m, "message_bury($1, $2, $3)", []string{err.Error()})
	default:
		delay := time.Minute
		if m.attempt < 7 {
			delay = time.Second << (m.attempt - 1)
		}
		w.end(m, "message_defer($1, $2, $3, null, $4)", []int64{delay.Milliseconds()}, []string{err.Error()})
	}
}

// read fetches a content that did not fit into the reply of dequeue.
func (w *worker) read(ctx context.Context, m *message) error {
	if m.content != nil {
		return nil
	}
	row := w.pool.QueryRow(ctx, "select content, headers from lonnymq.message_read($1, $2)", []int64{m.id}, []int64{m.token})
	return row.Scan(&m.content, &m.headers)
}

func (w *worker) heartbeat(ctx context.Context, lost context.CancelFunc, m *message) {
	until := time.Now().Add(lease)
	for pause(ctx, lease/3); ctx.Err() == nil; pause(ctx, lease/3) {
		asked := time.Now()
		outcome, err := w.call("message_heartbeat($1, $2, $3, p_is_durable => false)", m, lease.Milliseconds())
		if err == nil && outcome == "extended" {
			until = asked.Add(lease)
		}
		if outcome == "lease_lost" || outcome == "cancelled" || time.Now().After(until) {
			lost()
		}
	}
}

// end repeats a call until the queue has answered. If an answer was lost, the next one is lease_lost.
func (w *worker) end(m *message, function string, details ...any) {
	for until := time.Now().Add(lease); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		outcome, err := w.call(function, m, details...)
		if err == nil && outcome != "busy" {
			log.Printf("message %d, attempt %d: %s", m.id, m.attempt, outcome)
			return
		}
	}
}

func (w *worker) call(function string, m *message, details ...any) (outcome string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	arguments := append([]any{[]int64{m.id}, []int64{m.token}}, details...)
	err = w.pool.QueryRow(ctx, "select outcome from lonnymq."+function, arguments...).Scan(&outcome)
	if err != nil {
		log.Printf("message %d: %v", m.id, err)
	}
	return outcome, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

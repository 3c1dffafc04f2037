package main

import (
	"context"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const registeredFor = 30 * time.Second

// sleeper waits until dequeue may have something: LISTEN, and a registration that makes producers notify.
type sleeper struct {
	worker       *worker
	conn         *pgxpool.Conn
	until        time.Time
	unawareBelow int64 // transactions below this one may not have seen the registration
	settling     time.Duration
}

// wait may return early, so dequeue again in any case.
func (s *sleeper) wait(stop context.Context, longest time.Duration) {
	if err := s.tryToWait(stop, longest); err != nil && stop.Err() == nil {
		log.Printf("polling, because LISTEN failed: %v", err)
		s.close()
		if longest > time.Second {
			longest = time.Second
		}
		pause(stop, longest)
	}
}

func (s *sleeper) tryToWait(stop context.Context, longest time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := s.listen(ctx); err != nil {
		return err
	}
	var oldest, newest int64
	horizon := func() error {
		return s.conn.QueryRow(ctx, "select oldest, newest from lonnymq.queue_horizon()").Scan(&oldest, &newest)
	}
	if time.Until(s.until) <= 0 {
		if err := s.register(ctx); err != nil {
			return err
		}
		err := horizon()
		s.unawareBelow, s.settling = newest, time.Millisecond
		return err
	}
	if s.unawareBelow > 0 {
		if err := horizon(); err != nil {
			return err
		}
		if oldest >= s.unawareBelow {
			s.unawareBelow = 0
			return nil
		}
		if longest > s.settling {
			longest = s.settling
		}
		if s.settling < 250*time.Millisecond {
			s.settling *= 2
		}
	} else if time.Until(s.until) < registeredFor/2 {
		until := s.until
		if err := s.register(ctx); err != nil {
			return err
		}
		if time.Now().After(until) {
			// The old registration expired before the new one was committed: start again.
			s.until = time.Time{}
			return nil
		}
	}
	if left := time.Until(s.until); longest > left {
		longest = left
	}
	waiting, cancel := context.WithTimeout(stop, longest)
	defer cancel()
	_, err := s.conn.Conn().WaitForNotification(waiting)
	if waiting.Err() != nil {
		return nil
	}
	return err
}

func (s *sleeper) listen(ctx context.Context) (err error) {
	if s.conn != nil {
		return nil
	}
	if s.conn, err = s.worker.pool.Acquire(ctx); err != nil {
		return err
	}
	var event string
	if err = s.conn.QueryRow(ctx, "select lonnymq.queue_event()").Scan(&event); err != nil {
		return err
	}
	_, err = s.conn.Exec(ctx, "listen "+pgx.Identifier{event}.Sanitize())
	return err
}

func (s *sleeper) register(ctx context.Context) error {
	began := time.Now()
	_, err := s.conn.Exec(ctx, "select lonnymq.sleeper_register($1, $2)", s.worker.name, registeredFor.Milliseconds())
	s.until = began.Add(registeredFor)
	return err
}

// close withdraws the registration.
func (s *sleeper) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	s.conn.Exec(ctx, "select lonnymq.sleeper_clear($1)", s.worker.name)
	s.conn.Conn().Close(ctx)
	s.conn.Release()
	s.conn, s.until = nil, time.Time{}
}

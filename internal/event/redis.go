package event

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/internal/clock"
)

const (
	channel = "berth:events"
	// A connection without data for two periods, the second one after a ping, is dead.
	silence   = 5 * time.Second
	retryWait = 200 * time.Millisecond
	// While nothing can be received, subscribers get a Lagged event at this interval.
	lagEvery  = 2 * time.Second
	batchSize = 128
)

// message is an event in the format of Redis.
type message struct {
	Origin string `json:"o"`
	Sent   int64  `json:"s,omitempty"` // Unix time in µs, by the clock of the origin
	Event
}

// Run exchanges events with the other managers until ctx ends. While Redis is unreachable, the bus
// still delivers the events of this process, and a Lagged event every two seconds for those of the
// others. When Redis is back, all subscribers get a Lagged event.
func (b *Bus) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { b.send(ctx) })
	both.Go(func() { b.receive(ctx) })
	both.Wait()
	return nil
}

// send sends the events in the outbox to Redis.
func (b *Bus) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-b.outbox:
			b.push(ctx, b.more(e))
		}
	}
}

// more adds the other waiting events to the first one.
func (b *Bus) more(e Event) []Event {
	batch := []Event{e}
	for len(batch) < batchSize {
		select {
		case e := <-b.outbox:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// push sends a batch. If that fails, it records the loss and waits until it can report it.
func (b *Bus) push(ctx context.Context, batch []Event) {
	if b.takeHole() {
		batch = append([]Event{{Topic: Lagged}}, batch...)
	}
	err := b.publish(ctx, batch)
	if err == nil {
		return
	}
	b.meter.lost.Add(float64(len(batch)))
	b.log.Warn("events not sent", "events", len(batch), "error", err)
	for err != nil && clock.Pause(ctx, retryWait) == nil {
		err = b.publish(ctx, []Event{{Topic: Lagged}})
	}
	if err == nil {
		b.log.Info("events are sent again")
	}
}

func (b *Bus) publish(ctx context.Context, batch []Event) error {
	now := time.Now().UnixMicro()
	_, err := b.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, e := range batch {
			data, err := json.Marshal(message{b.origin, now, e})
			if err != nil {
				return err
			}
			p.Publish(ctx, channel, data)
		}
		return nil
	})
	return err
}

// receive delivers the events of the other managers.
func (b *Bus) receive(ctx context.Context) {
	var marked time.Time
	for first := true; ; first = false {
		err := b.listen(ctx, !first)
		if ctx.Err() != nil {
			return
		}
		if time.Since(marked) >= lagEvery {
			marked = time.Now()
			b.deliver(Event{Topic: Lagged})
		}
		b.log.Warn("events not received", "error", err)
		if clock.Pause(ctx, retryWait) != nil {
			return
		}
	}
}

// listen delivers events of one connection until its end. again reports that it replaces an earlier
// connection, so events may have been lost in between.
func (b *Bus) listen(ctx context.Context, again bool) error {
	sub := b.redis.Subscribe(ctx, channel)
	defer sub.Close()
	// The end of ctx does not end a blocked read.
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer stop()
	pinged := false
	for ctx.Err() == nil {
		m, err := sub.ReceiveTimeout(ctx, silence)
		if timeout(err) && !pinged {
			pinged, err = true, sub.Ping(ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		pinged = false
		switch m := m.(type) {
		case *redis.Subscription:
			if again {
				b.log.Info("events are received again")
				b.deliver(Event{Topic: Lagged})
			}
		case *redis.Message:
			b.receiveOne(m.Payload)
		}
	}
	return ctx.Err()
}

func (b *Bus) receiveOne(payload string) {
	var m message
	if err := json.Unmarshal([]byte(payload), &m); err != nil {
		b.log.Warn("unreadable event", "error", err)
		return
	}
	if m.Origin == b.origin {
		b.meter.back(m.Sent)
		return
	}
	b.deliver(m.Event)
}

func timeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

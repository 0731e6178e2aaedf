// Package live stores in Redis the text of answers that have not ended, and which gateways run them. Texts only grow, so a
// reader asks for what comes after the bytes that it has.
package live

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// keptFor is the time after which Redis forgets a text that does not grow. Its row has it within seconds.
	keptFor = time.Hour
	// aliveFor is the time after which a gateway that does not report counts as gone.
	aliveFor = 5 * time.Second
	// MaxText limits the text of an answer, and its reasoning, in bytes.
	MaxText = 4 << 20
)

// Store is the store of texts.
type Store struct{ Redis redis.UniversalClient }

// Part is a part of an answer.
type Part struct{ Text, Reasoning string }

// Place is what a reader has of an answer, in bytes.
type Place struct{ Text, Reasoning int }

// After returns the place after a part.
func (p Place) After(x Part) Place {
	return Place{p.Text + len(x.Text), p.Reasoning + len(x.Reasoning)}
}

// Empty reports whether the part has no text.
func (p Part) Empty() bool { return p == Part{} }

func textKey(answer uuid.UUID) string      { return "berth:chat:text:" + answer.String() }
func reasoningKey(answer uuid.UUID) string { return "berth:chat:reasoning:" + answer.String() }
func gatewayKey(gateway uuid.UUID) string  { return "berth:chat:gateway:" + gateway.String() }

// Append adds a part to an answer.
func (s Store) Append(ctx context.Context, answer uuid.UUID, p Part) error {
	_, err := s.Redis.Pipelined(ctx, func(do redis.Pipeliner) error {
		for key, text := range map[string]string{textKey(answer): p.Text, reasoningKey(answer): p.Reasoning} {
			if text != "" {
				do.Append(ctx, key, text)
				do.Expire(ctx, key, keptFor)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("append to answer %s: %w", answer, err)
	}
	return nil
}

// Read returns what answers have after the places.
func (s Store) Read(ctx context.Context, from map[uuid.UUID]Place) (map[uuid.UUID]Part, error) {
	type pair struct{ text, reasoning *redis.StringCmd }
	cmds := make(map[uuid.UUID]pair, len(from))
	_, err := s.Redis.Pipelined(ctx, func(do redis.Pipeliner) error {
		for answer, at := range from {
			cmds[answer] = pair{
				do.GetRange(ctx, textKey(answer), int64(at.Text), MaxText), do.GetRange(ctx, reasoningKey(answer), int64(at.Reasoning), MaxText),
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	out := make(map[uuid.UUID]Part, len(cmds))
	for answer, c := range cmds {
		out[answer] = Part{c.text.Val(), c.reasoning.Val()}
	}
	return out, nil
}

// Report says that a gateway runs.
func (s Store) Report(ctx context.Context, gateway uuid.UUID) error {
	return s.Redis.Set(ctx, gatewayKey(gateway), 1, aliveFor).Err()
}

// Leave says that a gateway has ended.
func (s Store) Leave(ctx context.Context, gateway uuid.UUID) error {
	return s.Redis.Del(ctx, gatewayKey(gateway)).Err()
}

// Gone returns those of the gateways that do not report.
func (s Store) Gone(ctx context.Context, gateways []uuid.UUID) ([]uuid.UUID, error) {
	cmds := make([]*redis.IntCmd, len(gateways))
	if len(gateways) == 0 {
		return nil, nil
	}
	_, err := s.Redis.Pipelined(ctx, func(do redis.Pipeliner) error {
		for i, g := range gateways {
			cmds[i] = do.Exists(ctx, gatewayKey(g))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for gateways: %w", err)
	}
	var gone []uuid.UUID
	for i, c := range cmds {
		if c.Val() == 0 {
			gone = append(gone, gateways[i])
		}
	}
	return gone, nil
}

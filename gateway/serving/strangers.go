package serving

import (
	"context"
	"sync"
	"time"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/manager/auth"
)

const (
	// refusedFor is the time for which a key that is not valid is refused without a look at the database.
	refusedFor = 10 * time.Second
	// maxGuesses is the number of keys that are not valid, each counted once in refusedFor, that a network can send in a
	// minute. Then it is refused until the minute ends, except with keys that this gateway knows.
	maxGuesses = 60
	// maxStrangers limits the memory for both.
	maxStrangers = 50_000
)

// strangers are keys that are not valid, and the networks that they come from. The zero value is empty.
type strangers struct {
	mu      sync.Mutex
	refused map[hash]time.Time
	minute  int64
	guesses map[string]int // by network, in this minute
}

// check returns an error for a key that is known not to be valid, and for a network with too many of them.
func (s *strangers) check(ctx context.Context, key hash, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch at, is := s.refused[key]; {
	case is && now.Sub(at) < refusedFor:
		return errInvalidKey
	case s.minute == now.Unix()/60 && s.guesses[auth.NetworkFrom(ctx)] >= maxGuesses:
		return &inference.Limit{
			Message: "your network sends too many keys that are not valid", After: time.Duration(60-now.Unix()%60) * time.Second,
		}
	}
	return nil
}

// add counts a key that is not valid.
func (s *strangers) add(ctx context.Context, key hash, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil || len(s.refused) >= maxStrangers {
		s.refused = map[hash]time.Time{}
	}
	s.refused[key] = now
	if minute := now.Unix() / 60; s.minute != minute || len(s.guesses) >= maxStrangers {
		s.minute, s.guesses = minute, map[string]int{}
	}
	s.guesses[auth.NetworkFrom(ctx)]++
}

// Package devicelogin logs a program in without a password on its machine, as RFC 8628 describes it: the program shows a code, a
// person who is logged in on the page confirms it, and the program gets an access token of that person.
//
// The requests are in Redis, which can lose them: the program then starts again. The token is created when the program
// fetches it, so it is never stored, and it exists only if the login that has confirmed it is still valid.
package devicelogin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
)

const (
	// life is how long a code is valid.
	life = 10 * time.Minute
	// interval is the time between two requests of a program for its token.
	interval = 2 * time.Second
	// letters of a code: no vowels, so that no words arise, and none that look like digits.
	letters = "BCDFGHJKLMNPQRSTVWXZ"
	// codeLength gives 20^8 codes, that is 34 bits, of which a user can try mostTries.
	codeLength = 8
	// mostStarts limits the requests of an address, and mostTries the codes that a user enters, in 15 minutes.
	mostStarts = 30
	mostTries  = 20
	// maxDays limits the life of the token.
	maxDays = 3650
)

// Config has what a Service needs.
type Config struct {
	Client *ent.Client
	Redis  redis.UniversalClient
	Auth   *auth.Service
	Audit  *audit.Service
	Logger *slog.Logger
}

// Service keeps the requests. New creates one.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// request is what a program has sent, and what the person sees before they confirm.
type request struct {
	Host    string    `json:"host"` // as the program names its machine
	Program string    `json:"program"`
	Address string    `json:"address"`
	Created time.Time `json:"createdAt"`
	Days    int       `json:"expiresDays"` // until the token expires; 0: never
}

// decision is the answer of a person.
type decision struct {
	Confirmed bool
	Login     uuid.UUID // with which the person has confirmed
	User      uuid.UUID
}

// The keys in Redis. A secret of a program is not stored, only its hash.
func requestKey(hash string) string  { return "berth:device:" + hash }
func decisionKey(hash string) string { return "berth:device:decision:" + hash }
func pollKey(hash string) string     { return "berth:device:poll:" + hash }
func codeKey(code string) string     { return "berth:device:code:" + code }

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newCode returns a random code. A byte below 240 gives each of the 20 letters with the same probability.
func newCode() string {
	code := make([]byte, 0, codeLength)
	for b := make([]byte, 1); len(code) < codeLength; {
		_, _ = rand.Read(b) // never fails
		if n := len(letters); int(b[0]) < 256/n*n {
			code = append(code, letters[int(b[0])%n])
		}
	}
	return string(code)
}

// shown returns a code as people read it: XXXX-XXXX.
func shown(code string) string { return code[:codeLength/2] + "-" + code[codeLength/2:] }

// plain returns the letters of a code that a person has typed.
func plain(typed string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(typed))
}

// unavailable replaces errors of Redis.
func unavailable(err error) error {
	return problem.Unavailable("the login by code is unavailable, try again in a few seconds").RetryAfter(interval).Because(err)
}

// begin stores a request and returns its secret and its code.
func (s *Service) begin(ctx context.Context, r request) (secret, code string, err error) {
	secret = rand.Text() + rand.Text()
	text, err := json.Marshal(r)
	if err != nil {
		return "", "", err
	}
	if err := s.Redis.Set(ctx, requestKey(hashOf(secret)), text, life).Err(); err != nil {
		return "", "", unavailable(err)
	}
	for range 10 {
		code = newCode()
		free, err := s.Redis.SetNX(ctx, codeKey(code), hashOf(secret), life).Result()
		if err != nil {
			return "", "", unavailable(err)
		}
		if free {
			return secret, code, nil
		}
	}
	return "", "", problem.Unavailable("too many logins by code are waiting, try again in 10 minutes")
}

// find returns the request with a code.
func (s *Service) find(ctx context.Context, code string) (hash string, r request, err error) {
	unknown := problem.NotFound("code")
	if len(code) != codeLength {
		return "", r, unknown
	}
	hash, err = s.Redis.Get(ctx, codeKey(code)).Result()
	if errors.Is(err, redis.Nil) {
		return "", r, unknown
	}
	if err != nil {
		return "", r, unavailable(err)
	}
	r, err = s.read(ctx, hash)
	return hash, r, err
}

func (s *Service) read(ctx context.Context, hash string) (r request, err error) {
	text, err := s.Redis.Get(ctx, requestKey(hash)).Bytes()
	if errors.Is(err, redis.Nil) {
		return r, problem.NotFound("code")
	}
	if err != nil {
		return r, unavailable(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read a request for a login: %w", err)
	}
	return r, nil
}

// decide stores the answer of a person. The code ends with the first answer.
func (s *Service) decide(ctx context.Context, code string, d decision) error {
	hash, err := s.Redis.GetDel(ctx, codeKey(code)).Result()
	if errors.Is(err, redis.Nil) {
		return problem.NotFound("code")
	}
	if err != nil {
		return unavailable(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := s.Redis.Set(ctx, decisionKey(hash), text, life).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// take returns the answer to a request and removes both, or nil before there is an answer. Of several callers at a time, one
// gets the answer.
func (s *Service) take(ctx context.Context, hash string) (*decision, request, error) {
	r, err := s.read(ctx, hash)
	if err != nil {
		return nil, r, err
	}
	text, err := s.Redis.GetDel(ctx, decisionKey(hash)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, r, nil
	}
	if err != nil {
		return nil, r, unavailable(err)
	}
	if err := s.Redis.Del(ctx, requestKey(hash)).Err(); err != nil {
		return nil, r, unavailable(err)
	}
	var d decision
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, r, fmt.Errorf("read the answer to a request for a login: %w", err)
	}
	return &d, r, nil
}

// tokenName is the name of the token of a machine.
func tokenName(r request) string {
	return fmt.Sprintf("berth on %s %s", r.Host, clock.Now().UTC().Format("2006-01-02 150405"))
}

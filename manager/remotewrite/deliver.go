package remotewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/berthhq/berth/internal/clock"
)

const (
	sendTime = 30 * time.Second
	// firstPause and maxPause are between tries while the receiver does not take samples.
	firstPause = time.Second
	maxPause   = time.Minute
	maxAnswer  = 2 << 10
)

// refusal is an answer after which a repetition of the request is useless.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("the receiver answers %d: %s", r.status, r.text) }

// deliver sends the batches of several chunks in one request. It returns only when the receiver has taken or refused them, or
// with an error when ctx ends. A receiver refuses a request as a whole, for example because it has some of the samples
// already; each chunk is then sent by itself, so that only those samples are dropped.
func (s *Service) deliver(ctx context.Context, parts []batch) error {
	var all batch
	for _, b := range parts {
		all.series, all.samples = append(all.series, b.series...), all.samples+b.samples
	}
	if all.samples == 0 {
		return nil
	}
	err := s.persist(ctx, all)
	var refused *refusal
	switch {
	case err == nil:
		s.meter.sent.Add(float64(all.samples))
		return nil
	case !errors.As(err, &refused):
		return err
	case len(parts) == 1:
		s.meter.dropped.WithLabelValues("refused").Add(float64(all.samples))
		s.Logger.WarnContext(ctx, "measurements were refused by Prometheus", "samples", all.samples, "error", err)
		return nil
	}
	for _, b := range parts {
		if err := s.deliver(ctx, []batch{b}); err != nil {
			return err
		}
	}
	return nil
}

// persist sends a request until it has an answer, with growing pauses. The samples stay in the database meanwhile.
func (s *Service) persist(ctx context.Context, b batch) error {
	raw, err := (&prompb.WriteRequest{Timeseries: b.series}).Marshal()
	if err != nil {
		return fmt.Errorf("encode samples: %w", err)
	}
	packed := snappy.Encode(nil, raw)
	pause := firstPause
	for {
		wait, err := s.send(ctx, packed)
		var refused *refusal
		if err == nil || errors.As(err, &refused) {
			return err
		}
		s.meter.failures.Inc()
		if pause == firstPause {
			s.Logger.WarnContext(ctx, "Prometheus does not take measurements, retrying", "error", err)
		}
		if err := clock.Pause(ctx, max(pause, wait)); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// send sends one request. It returns the pause that the receiver asks for.
func (s *Service) send(ctx context.Context, packed []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(packed))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	r.Header.Set("User-Agent", "berth")
	if err := s.authorize(r); err != nil {
		return 0, err
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	answer := &refusal{resp.StatusCode, strings.TrimSpace(string(text))}
	switch {
	case resp.StatusCode/100 == 2:
		return 0, nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode/100 == 5,
		resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusNotFound, resp.StatusCode/100 == 3:
		// A wrong token or address is repaired by an administrator; until then nothing is dropped.
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			wait = min(time.Duration(seconds)*time.Second, maxPause)
		}
		return wait, errors.New(answer.Error())
	}
	return 0, answer
}

// authorize adds the credentials. Files are read each time, so that administrators can replace them.
func (s *Service) authorize(r *http.Request) error {
	read := func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return strings.TrimSpace(string(text)), err
	}
	switch {
	case s.TokenFile != "":
		token, err := read(s.TokenFile)
		if err != nil {
			return fmt.Errorf("read the token of remote write: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
	case s.User != "":
		password, err := read(s.PasswordFile)
		if err != nil {
			return fmt.Errorf("read the password of remote write: %w", err)
		}
		r.SetBasicAuth(s.User, password)
	}
	return nil
}

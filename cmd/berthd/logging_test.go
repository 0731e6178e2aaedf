package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/requestid"
)

func TestJSONLinesHaveNoKeyTwiceAndSeconds(t *testing.T) {
	var out bytes.Buffer
	log, err := loggerTo(&out, "info", true)
	if err != nil {
		t.Fatal(err)
	}
	log.InfoContext(requestid.With(t.Context(), "abc"), "served", "took", 1500*time.Millisecond)
	if n := strings.Count(out.String(), `"request":`); n != 1 {
		t.Errorf("the key request is there %d times: %s", n, out.String())
	}
	var line struct{ Took float64 }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Took != 1.5 {
		t.Errorf("took %v (%v), want 1.5: %s", line.Took, err, out.String())
	}
}

func TestRepeatedWarningsAreDropped(t *testing.T) {
	var out bytes.Buffer
	log, err := loggerTo(&out, "info", false)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		log.Warn("publish", "error", "redis: connection refused", "took", time.Since(time.Now()))
		log.With("part", "agent").Warn("publish", "error", "redis: connection refused")
		log.WarnContext(requestid.With(context.Background(), "r1"), "publish", "error", "redis: connection refused")
	}
	log.Warn("publish", "error", "another error")
	text := out.String()
	if n := strings.Count(text, "request=r1"); n != 50 {
		t.Errorf("%d lines of the request, want all 50", n)
	}
	if n := strings.Count(text, "\n") - 50; n != 3 {
		t.Errorf("%d other lines, want 3:\n%s", n, text)
	}
}

func TestDroppedLinesAreCounted(t *testing.T) {
	l := &lines{last: map[string]*line{}}
	now := time.Now()
	for i := range 5 {
		if _, write := l.take("x", now.Add(time.Duration(i)*time.Second)); write != (i == 0) {
			t.Errorf("line %d: written %t", i, write)
		}
	}
	if dropped, write := l.take("x", now.Add(repeatEvery)); !write || dropped != 4 {
		t.Errorf("after a minute: %d dropped, written %t; want 4, true", dropped, write)
	}
}

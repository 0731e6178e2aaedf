package containerfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConn(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	c := NewConn(&wire, &wire)
	sent := Request{Op: Write, Path: "a\nb\u202e", Size: 300_000}
	if err := c.Send(sent); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789"), 30_000)
	if _, err := c.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var got Request
	if err := c.Receive(&got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sent, got); d != "" {
		t.Error(d)
	}
	var out bytes.Buffer
	if n, err := c.WriteTo(&out); n != int64(len(content)) || err != nil || !bytes.Equal(out.Bytes(), content) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := c.Receive(&got); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A failure in the middle of data ends it, so that a part of a file never looks complete.
func TestFailureInsteadOfData(t *testing.T) {
	t.Parallel()
	var wire bytes.Buffer
	c := NewConn(&wire, &wire)
	_, _ = c.Write([]byte("half"))
	_ = c.Send(Answer{Failure: &Failure{Class: NoSpace, Message: "no space"}})
	_, err := c.WriteTo(io.Discard)
	var f *Failure
	if !errors.As(err, &f) || f.Class != NoSpace {
		t.Errorf("%v", err)
	}
}

// A hostile side cannot make the other one use much memory, or wait for missing data.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]string{
		"a frame of 4 GiB":         "h\xff\xff\xff\xff",
		"data of 5 MiB":            "d\x00\x50\x00\x00",
		"an unknown kind":          "x\x00\x00\x00\x00",
		"a truncated message":      "h\x00\x00\x00\x09{\"op\"",
		"a message, not JSON":      "h\x00\x00\x00\x03abc",
		"an end with content":      "e\x00\x00\x00\x01a",
		"a message without fields": "h\x00\x00\x00\x02{}",
	} {
		if _, err := NewConn(strings.NewReader(wire), io.Discard).WriteTo(io.Discard); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s as data: %v", name, err)
		}
		var a Answer
		if err := NewConn(strings.NewReader(wire), io.Discard).Receive(&a); name != "a message without fields" && (err == nil || errors.Is(err, io.EOF)) {
			t.Errorf("%s as a message: %v", name, err)
		}
	}
}

func TestGoodUpload(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"0a1b2c3d": true, "short": false, "../../../etc": false, "": false, "ABCDEFGH": false, "abcdefg\n": false, strings.Repeat("a", 65): false} {
		if GoodUpload(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
)

// readLine reads byte by byte, so that later readers get all bytes that follow.
func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := r.Read(b)
		if n == 1 && b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[:n]...)
		if err != nil {
			t.Fatalf("%v after %q", err, line)
		}
	}
}

func jsonFrame(b []byte, into any) error {
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("frame %q: %w", b, err)
	}
	return nil
}

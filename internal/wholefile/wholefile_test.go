package wholefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/internal/wholefile"
)

// Readers see the old or the new text during a write, other users cannot read the file, and no
// other file stays in the directory.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	texts := map[string]bool{"one": true, "another, which is longer": true}
	done := make(chan error, 1)
	if err := wholefile.Write(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			for text := range texts {
				if err == nil {
					err = wholefile.Write(path, []byte(text))
				}
			}
		}
		done <- err
	}()
	for {
		if text, err := os.ReadFile(path); err != nil || !texts[string(text)] {
			t.Fatalf("%q %v", text, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
			if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
				t.Errorf("%v %v", all, err)
			}
			if err := wholefile.Write(filepath.Join(path, "below"), nil); err == nil {
				t.Error("below a file")
			}
			return
		default:
		}
	}
}

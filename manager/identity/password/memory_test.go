package password

import (
	"runtime"
	"testing"
	"time"
)

func TestHasherGivesMemoryBack(t *testing.T) {
	const memory = 128 << 20
	before := held()
	h := NewHasher(Cost{Memory: memory >> 10, Time: 1, Threads: 1})
	if _, err := h.Hash(t.Context(), "correct horse"); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute) // half of the time after which Go returns memory by itself
	for held() > before+memory/2 {
		if time.Now().After(deadline) {
			t.Fatalf("%d MiB are held after a hash that took %d, before it %d", held()>>20, memory>>20, before>>20)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// held returns the memory that the heap has obtained from the system.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

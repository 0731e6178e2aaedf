package sim

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// realNow is the time outside of the simulation.
func realNow() time.Time {
	var tv syscall.Timeval
	_ = syscall.Gettimeofday(&tv)
	return time.Unix(tv.Unix())
}

// reseed lets ids follow from the seed.
func reseed(seed uint64) {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	uuid.SetRand(rand.NewChaCha8(key))
}

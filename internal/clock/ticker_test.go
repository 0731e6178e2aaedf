package clock

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTickersOfSeveralLoopsTickApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, loops, ticks = 5 * time.Second, 8, 3
		var mu sync.Mutex
		at := map[time.Time]int{}
		done := make(chan struct{})
		for i := range loops {
			tick := NewTicker(fmt.Sprintf("loop %d", i), every)
			defer tick.Stop()
			go func() {
				for {
					select {
					case now := <-tick.C:
						mu.Lock()
						at[now]++
						mu.Unlock()
					case <-done:
						return
					}
				}
			}()
		}
		time.Sleep(ticks * every)
		close(done)
		synctest.Wait()
		if len(at) != loops*ticks {
			t.Errorf("%d loops ticked at %d moments, want %d", loops, len(at), loops*ticks)
		}
	})
}

func TestTickerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := NewTicker("loop", time.Second)
		<-tick.C
		first := time.Now()
		if next := <-tick.C; next.Sub(first) != time.Second {
			t.Errorf("the next tick came after %v", next.Sub(first))
		}
		tick.Stop()
		time.Sleep(time.Minute)
		select {
		case <-tick.C:
			t.Error("a stopped ticker ticked")
		default:
		}
	})
}

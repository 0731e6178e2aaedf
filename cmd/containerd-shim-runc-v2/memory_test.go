package main

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/ttrpc"
)

// noted returns a memory that only records its calls of the Go runtime.
func noted() (m *memory, calls func() []int) {
	var list []int
	m = &memory{collect: func(percent int) { list = append(list, percent) }}
	m.timer = time.AfterFunc(restAfter, m.rest)
	return m, func() []int {
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		defer func() { list = nil }()
		return list
	}
}

func TestIdleShimGivesMemoryBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, calls := noted()
		time.Sleep(restAfter - 1)
		m.used()
		time.Sleep(restAfter - 1)
		if got := calls(); len(got) != 0 {
			t.Errorf("calls %v while used", got)
		}
		time.Sleep(time.Hour)
		if got := calls(); !slices.Equal(got, []int{-1}) {
			t.Errorf("calls %v in an idle hour, want -1 once", got)
		}
		m.used()
		m.used()
		if got := calls(); !slices.Equal(got, []int{percent}) {
			t.Errorf("calls %v when used again, want %d once", got, percent)
		}
		time.Sleep(time.Hour)
		if got := calls(); !slices.Equal(got, []int{-1}) {
			t.Errorf("calls %v in the next idle hour, want -1 once", got)
		}
	})
}

// TestShimRestsDuringWait makes a call that lasts as long as the container.
func TestShimRestsDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, calls := noted()
		ended := make(chan struct{})
		go func() {
			_, _ = m.intercept(t.Context(), nil, &ttrpc.UnaryServerInfo{}, func(context.Context, func(any) error) (any, error) {
				<-ended
				return nil, nil
			})
		}()
		time.Sleep(time.Hour)
		if got := calls(); !slices.Equal(got, []int{-1}) {
			t.Errorf("calls %v while the call waits, want -1 once", got)
		}
		close(ended)
		if got := calls(); !slices.Equal(got, []int{percent}) {
			t.Errorf("calls %v when the call ends, want %d", got, percent)
		}
	})
}

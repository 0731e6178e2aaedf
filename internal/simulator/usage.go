package simulator

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
)

// Usage is what a directory and all below it take.
type Usage struct {
	Bytes       int64 // as its limit counts them
	Files       int64 // entries that are not directories
	Directories int64 // below it
}

// Usage measures a directory that can be limited; another one is EINVAL. It is
// exact: the file system is synced first.
func (t *Tree) Usage(name string) (Usage, error) {
	var u Usage
	d, err := t.open(name)
	if err != nil {
		return u, err
	}
	defer d.Close()
	if yes, err := qgroup.IsSubvolume(d); err != nil || !yes {
		return u, errorsOr(err, unix.EINVAL)
	}
	id, err := qgroup.Subvolume(d)
	if err == nil {
		err = qgroup.Sync(d)
	}
	if err != nil {
		return u, err
	}
	g, err := qgroup.Read(d, id)
	if err != nil {
		return u, err
	}
	u.Bytes = max(0, g.Referenced-emptySize)
	err = fs.WalkDir(t.root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || at == name:
		case e.IsDir():
			u.Directories++
		default:
			u.Files++
		}
		return nil // what vanishes meanwhile does not count
	})
	return u, err
}

func errorsOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Capacity is the size of the whole, and what is used and free of it.
func (t *Tree) Capacity() (total, used, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(t.top.Fd()), &st); err != nil {
		return 0, 0, 0, err
	}
	return int64(st.Blocks) * st.Bsize, int64(st.Blocks-st.Bfree) * st.Bsize, int64(st.Bavail) * st.Bsize, nil
}

// Rates are what the disk behind the tree does: requests, and so what clients
// write reaches them when it is written out.
type Rates struct {
	At           time.Time
	Window       time.Duration
	Reads        float64 // a second
	Writes       float64
	BytesRead    float64
	BytesWritten float64
	ReadMicros   float64 // mean time of one; 0 without any
	WriteMicros  float64
}

// Totals are the counters behind Rates, for products that tell those.
func (t *Tree) Totals() Totals {
	t.disk.sample()
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	return t.disk.samples[len(t.disk.samples)-1]
}

// Rates of the last window, or of as much of it as the array has run for.
func (t *Tree) Rates(window time.Duration) Rates {
	if r := t.pretended.Load(); r != nil {
		made := *r
		made.At, made.Window = time.Now(), window
		return made
	}
	return t.disk.rates(window)
}

// Pretend makes the rates these from now on; nil makes them the disk's again.
func (t *Tree) Pretend(r *Rates) { t.pretended.Store(r) }

// Totals are counters since the disk is there.
type Totals struct {
	At                      time.Time
	Reads, Writes           int64
	BytesRead, BytesWritten int64
	ReadMillis, WriteMillis int64 // spent in them
}

const (
	sampleEvery = 100 * time.Millisecond
	samplesKept = 3000 // five minutes
)

// meter reads the counters of a block device again and again.
type meter struct {
	file    string // "" when the device has none: every rate is zero
	mu      sync.Mutex
	samples []Totals
}

func newMeter(mount string) *meter {
	m := &meter{file: statFile(mount)}
	m.sample()
	return m
}

// statFile finds the counters of the device that is mounted; btrfs has numbers of
// its own, so stat(2) does not tell.
func statFile(mount string) string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	best, device := "", ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) > 4 && len(r) > 1 && len(l[4]) >= len(best) && (mount == l[4] || strings.HasPrefix(mount, l[4]+"/")) {
			best, device = l[4], r[1]
		}
	}
	return "/sys/class/block/" + strings.TrimPrefix(device, "/dev/") + "/stat"
}

func (m *meter) run(ctx context.Context) {
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			m.sample()
		case <-ctx.Done():
			return
		}
	}
}

func (m *meter) sample() {
	s := Totals{At: time.Now()}
	if raw, err := os.ReadFile(m.file); err == nil {
		// reads, merged, sectors, ms; the same of writes; …
		n := make([]int64, 8)
		for i, text := range strings.Fields(string(raw)) {
			if i < len(n) {
				n[i], _ = strconv.ParseInt(text, 10, 64)
			}
		}
		s.Reads, s.BytesRead, s.ReadMillis = n[0], n[2]*512, n[3]
		s.Writes, s.BytesWritten, s.WriteMillis = n[4], n[6]*512, n[7]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, s)
	if len(m.samples) > samplesKept {
		m.samples = append([]Totals(nil), m.samples[samplesKept/2:]...)
	}
}

func (m *meter) rates(window time.Duration) Rates {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.samples[len(m.samples)-1]
	first := m.samples[0]
	for _, s := range m.samples {
		if last.At.Sub(s.At) < window {
			break
		}
		first = s
	}
	span := last.At.Sub(first.At)
	r := Rates{At: last.At, Window: span}
	if seconds := span.Seconds(); seconds > 0 {
		r.Reads, r.Writes = float64(last.Reads-first.Reads)/seconds, float64(last.Writes-first.Writes)/seconds
		r.BytesRead, r.BytesWritten = float64(last.BytesRead-first.BytesRead)/seconds, float64(last.BytesWritten-first.BytesWritten)/seconds
	}
	if n := last.Reads - first.Reads; n > 0 {
		r.ReadMicros = float64(last.ReadMillis-first.ReadMillis) * 1000 / float64(n)
	}
	if n := last.Writes - first.Writes; n > 0 {
		r.WriteMicros = float64(last.WriteMillis-first.WriteMillis) * 1000 / float64(n)
	}
	return r
}

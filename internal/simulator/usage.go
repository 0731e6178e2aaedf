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

// Usage is the usage of a directory and everything below it.
type Usage struct {
	Bytes       int64 // as its limit counts them
	Files       int64 // entries that are not directories
	Directories int64 // below it
}

// Usage measures a directory that can have a limit, and returns EINVAL for another one. The result
// is exact, because the file system is synced first.
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
		return nil // removed in the meantime
	})
	return u, err
}

func errorsOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Capacity returns the total, used and free bytes of the file system.
func (t *Tree) Capacity() (total, used, free int64, err error) {
	// btrfs counts the blocks of a synced file only when its transaction is committed.
	if err := unix.Syncfs(int(t.top.Fd())); err != nil {
		return 0, 0, 0, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(t.top.Fd()), &st); err != nil {
		return 0, 0, 0, err
	}
	return int64(st.Blocks) * st.Bsize, int64(st.Blocks-st.Bfree) * st.Bsize, int64(st.Bavail) * st.Bsize, nil
}

// Rates are those of the disk behind the tree. Writes of clients are included when they are written
// to the disk.
type Rates struct {
	At           time.Time
	Window       time.Duration
	Reads        float64 // per second
	Writes       float64
	BytesRead    float64
	BytesWritten float64
	ReadMicros   float64 // mean duration; 0 without requests
	WriteMicros  float64
}

// Totals returns the counters behind Rates, for products that report counters.
func (t *Tree) Totals() Totals {
	t.disk.sample()
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	return t.disk.samples[len(t.disk.samples)-1]
}

// Rates returns the rates of the last window, or since the start if that is shorter.
func (t *Tree) Rates(window time.Duration) Rates {
	if r := t.pretended.Load(); r != nil {
		made := *r
		made.At, made.Window = time.Now(), window
		return made
	}
	return t.disk.rates(window)
}

// Pretend replaces the measured rates; nil restores them.
func (t *Tree) Pretend(r *Rates) { t.pretended.Store(r) }

// Totals are counters since the disk was attached.
type Totals struct {
	At                      time.Time
	Reads, Writes           int64
	BytesRead, BytesWritten int64
	ReadMillis, WriteMillis int64 // total duration
}

const (
	sampleEvery = 100 * time.Millisecond
	samplesKept = 3000 // five minutes
)

// meter reads the counters of a block device periodically.
type meter struct {
	file    string // "" if the device has none: all rates are zero
	mu      sync.Mutex
	samples []Totals
}

func newMeter(mount string) *meter {
	m := &meter{file: statFile(mount)}
	m.sample()
	return m
}

// statFile finds the counters of the mounted device. btrfs uses its own device numbers, so stat(2)
// does not return it.
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
		// reads, merged, sectors, ms; the same for writes; …
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

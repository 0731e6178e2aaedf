package e2e

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Many requests at once never get more in total than the policy allows.
func TestManyAtOnceStayWithinPolicy(t *testing.T) {
	u, admin := platform.User(t), platform.Admin(t)
	var made struct {
		CreateResourcePolicy struct{ Policy struct{ ID string } }
	}
	admin.Query(`mutation($input: CreateResourcePolicyInput!) { createResourcePolicy(input: $input) { policy { id } } }`,
		object{"input": object{"name": "small-" + u.ID[len(u.ID)-12:], "totalSlots": object{"cpu": "0.5"}}}, &made)
	var attached struct{}
	admin.Query(`mutation($input: AttachResourcePolicyInput!) { attachResourcePolicy(input: $input) { policy { id } } }`,
		object{"input": object{"policy": made.CreateResourcePolicy.Policy.ID, "user": u.ID}}, &attached)

	var wg sync.WaitGroup
	ids := make(chan string, 40)
	turns := make(chan struct{}, 16) // a manager accepts 20 concurrent requests per user
	for i := range 40 {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			in := cluster.Batch("sleep 0.2")
			in.Name = fmt.Sprintf("crowd-%d", i)
			s, err := u.CreateSession(t.Context(), in)
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			ids <- s.ID
		})
	}
	wg.Wait()
	close(ids)

	most, limit, seen := new(big.Rat), big.NewRat(1, 2), 0
	cluster.Eventually(t, "all sessions have ended", func() bool {
		held, live := holdings(t, u)
		if held.Cmp(limit) > 0 {
			t.Fatalf("%s CPUs are held, the policy allows %s", held.FloatString(3), limit.FloatString(3))
		}
		if held.Cmp(most) > 0 {
			most = held
		}
		seen++
		return live == 0
	})
	if most.Sign() == 0 {
		t.Errorf("no session held anything in %d looks", seen)
	}
	for id := range ids {
		if s := u.Show(id); s.Status != "TERMINATED" || s.Result != "SUCCESS" {
			t.Errorf("%s ended as %s, %s: %s", s.Name, s.Status, s.Result, s.StatusMessage)
		}
	}
}

// holdings sums up the live allocations of the user's sessions with one query.
func holdings(t *testing.T, u *cluster.User) (*big.Rat, int) {
	t.Helper()
	var out struct {
		Sessions struct {
			Edges []struct {
				Node struct {
					Status  string
					Kernels []struct {
						Allocations []struct {
							Slot, Amount string
							FreedAt      *time.Time
						}
					}
				}
			}
		}
	}
	u.Query(`{ sessions(first: 100) { edges { node { status kernels { allocations { slot amount freedAt } } } } } }`, nil, &out)
	sum, live := new(big.Rat), 0
	for _, e := range out.Sessions.Edges {
		if s := (client.Session{Status: client.Enum(e.Node.Status)}); !s.Ended() {
			live++
		}
		for _, k := range e.Node.Kernels {
			for _, a := range k.Allocations {
				if amount, ok := new(big.Rat).SetString(a.Amount); a.Slot == "cpu" && a.FreedAt == nil && ok {
					sum.Add(sum, amount)
				}
			}
		}
	}
	return sum, live
}

// One idempotency key creates one session, even for concurrent requests.
func TestIdempotencyKey(t *testing.T) {
	u := platform.User(t)
	in := cluster.Batch("true")
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for range 20 {
		wg.Go(func() {
			s, err := u.CreateSession(t.Context(), in)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			ids[s.ID]++
		})
	}
	wg.Wait()
	all, err := u.Sessions(t.Context(), client.SessionFilter{})
	if err != nil || len(all) != 1 || len(ids) != 1 {
		t.Errorf("%d sessions, %d answers; want one (%v)", len(all), len(ids), err)
	}
}

// Only one live session can have a name, even for concurrent requests.
func TestOneLiveSessionOfAName(t *testing.T) {
	u := platform.User(t)
	var wg sync.WaitGroup
	made := make(chan string, 10)
	for range 10 {
		wg.Go(func() {
			in := cluster.Interactive()
			in.Name = "the-one"
			s, err := u.CreateSession(t.Context(), in)
			if err == nil {
				made <- s.ID
			} else if !errdefs.IsAlreadyExists(err) {
				t.Errorf("create: %v", err)
			}
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Fatalf("%d sessions of one name", len(made))
	}
	u.End(<-made)
	again := cluster.Interactive()
	again.Name = "the-one"
	u.End(u.Run(again).ID)
}

// A session can be ended at every stage of its start, and nothing of it remains on the machine.
func TestTerminatedWhileStarting(t *testing.T) {
	u := platform.User(t)
	f, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	kernels := make(chan string, 20)
	for range 20 {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			in := cluster.Interactive()
			in.Mounts = []client.MountInput{{Vfolder: "data", Target: "/data"}}
			s, err := u.CreateSession(t.Context(), in)
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			time.Sleep(rand.N(300 * time.Millisecond))
			if _, err := u.TerminateSession(t.Context(), s.ID, rand.N(2) == 0); err != nil {
				t.Errorf("terminate: %v", err)
				return
			}
			cluster.Eventually(t, "the session has ended", func() bool {
				d, err := u.Session(t.Context(), s.ID)
				return err == nil && d.Ended()
			})
			d, err := u.Session(t.Context(), s.ID)
			if err != nil || d.Status == "ERROR" {
				t.Errorf("ended as %+v, %v", d, err)
				return
			}
			for _, k := range d.Kernels {
				for _, a := range k.Allocations {
					if a.FreedAt == nil {
						t.Errorf("%s (%s): %s of %s is still held", s.Name, d.Status, a.Amount, a.Slot)
					}
				}
				kernels <- k.ID
			}
		})
	}
	wg.Wait()
	close(kernels)
	for id := range kernels {
		cluster.Eventually(t, "nothing of kernel "+id+" is on the machine", func() bool { return !mentioned(t, id) })
	}
	if got, err := u.Folders(t.Context(), client.FolderFilter{ID: f.ID}); err != nil || len(got) != 1 || len(got[0].MountedBy) != 0 {
		t.Errorf("the folder is mounted still: %+v, %v", got, err)
	}
}

// mentioned reports whether a process, a mount or a cgroup contains the id.
func mentioned(t *testing.T, id string) bool {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(commands, "/proc/self/mountinfo") {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), id) {
			return true
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/berth/*/" + id)
	unified, _ := filepath.Glob("/sys/fs/cgroup/berth/*/" + id)
	return len(groups)+len(unified) > 0
}

package overlay

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
)

func used(t *testing.T, of string) *Used {
	t.Helper()
	r, err := Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return &Used{r: r, vnis: map[int]bool{}}
}

// release frees a network, as the end of a session does.
func (u *Used) release(p Part) {
	for i, s := range u.subnets {
		if s == p.Subnet {
			u.subnets = append(u.subnets[:i:i], u.subnets[i+1:]...)
			break
		}
	}
	delete(u.vnis, p.VNI)
}

func TestPartsAreAsLargeAsSessions(t *testing.T) {
	for kernels, bits := range map[int]int{2: 29, 5: 29, 6: 28, 13: 28, 14: 27, 29: 27, 30: 26, 61: 26, 62: 25, 253: 24} {
		p, ok := used(t, "").Take(kernels)
		if !ok || p.Subnet.Bits() != bits {
			t.Errorf("%d kernels get %v", kernels, p)
		}
		if last := Address(p.Subnet, kernels-1); !p.Subnet.Contains(last) || !p.Subnet.Contains(last.Next()) {
			t.Errorf("of %d kernels in %s the last has %s, where none is left for all", kernels, p.Subnet, last)
		}
	}
}

// Freed networks are reused as late as possible.
func TestPartsGoRound(t *testing.T) {
	u := used(t, "10.99.0.0/27") // four of the smallest
	var all []Part
	for range 4 {
		p, ok := u.Take(2)
		if !ok {
			t.Fatal("used up early")
		}
		all = append(all, p)
	}
	if _, ok := u.Take(2); ok || u.Largest() != 0 {
		t.Errorf("a fifth is given, or there is room for one of %d", u.Largest())
	}
	u.release(all[2])
	u.release(all[0])
	p, ok := u.Take(2)
	if !ok || p.Subnet != all[0].Subnet || p.VNI != all[3].VNI+1 {
		t.Errorf("after the last comes %v", p)
	}
	u.release(all[1])
	if p, _ := u.Take(2); p.Subnet != all[1].Subnet || p.VNI != all[3].VNI+2 {
		t.Errorf("and then %v", p)
	}
	u.last.VNI = agentpb.MaxVNI
	if p, ok := u.Take(2); !ok || p.VNI != agentpb.MinVNI && u.vnis[p.VNI-1] == false {
		t.Errorf("after the highest number comes %v", p)
	}
}

// In any sequence, no two sessions have the same address or number, and a request fails only if no
// range of its size is free.
func TestPartsAreOneSessions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	u := used(t, "10.99.0.0/24")
	var live []Part
	for range 5000 {
		if len(live) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(live))
			u.release(live[i])
			live = append(live[:i], live[i+1:]...)
			continue
		}
		kernels, largest := 2+rnd.IntN(28), u.Largest()
		p, ok := u.Take(kernels)
		if ok != (kernels <= largest) {
			t.Fatalf("a network of %d kernels, where the largest possible has %d: %v", kernels, largest, ok)
		}
		if !ok {
			continue
		}
		for _, o := range live {
			if o.VNI == p.VNI || o.Subnet.Overlaps(p.Subnet) {
				t.Fatalf("%v and %v", o, p)
			}
		}
		if !netip.MustParsePrefix("10.99.0.0/24").Contains(p.Subnet.Addr()) || p.Subnet != p.Subnet.Masked() {
			t.Fatalf("%v is none of the range", p)
		}
		live = append(live, p)
	}
}

func TestRanges(t *testing.T) {
	for _, bad := range []string{"10.0.0.0", "10.0.0.0/30", "0.0.0.0/0", "10.0.0.1/16", "fd00::/64", "no"} {
		if _, err := Parse(bad); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if r, err := Parse(""); err != nil || r.String() != "10.214.0.0/16" {
		t.Errorf("%v, %v", r, err)
	}
}

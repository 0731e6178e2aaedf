package limit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/testenv/wait"
)

const (
	mib = 1 << 20
	gib = 1 << 30
	// Results of the driver's calls.
	ok, invalid, full = "0", "1", "2"
)

var ways = []string{"link", "dlsym", "proc", "proc2", "own"}

// Every allocating call is refused beyond the limit, and the memory is available again after it is
// freed, however the program found the function.
func TestEveryCallInEveryWay(t *testing.T) {
	for _, how := range ways {
		for _, kind := range []string{"memory", "gmanaged", "pitch", "async", "frompool", "create", "rarray", "deeparray"} {
			t.Run(how+" "+kind, func(t *testing.T) {
				p := run(t, container(t, Cap{first, gib}), how)
				for range 3 {
					p.want(ok, "alloc %s %d", kind, 512*mib)
					p.want(full, "alloc %s %d", kind, 600*mib)
					p.want(ok, "free -1")
				}
				p.want(fmt.Sprintf("0 %d %d %d", gib, gib, gib), "info")
			})
		}
	}
}

func TestWithoutTheLibraryNothingIsRefused(t *testing.T) {
	p := run(t, "", "dlsym")
	p.want(ok, "alloc m %d", 60*int64(gib))
}

func TestWhatIsSeen(t *testing.T) {
	p := run(t, container(t, Cap{first, 4 * gib}), "proc2")
	p.want(ok, "alloc m %d", gib)
	p.want(fmt.Sprintf("0 %d %d %d", 3*gib, 4*int64(gib), 4*int64(gib)), "info")
	p.want(fmt.Sprintf("0 %d %d %d", 3*gib, 4*int64(gib), gib), "nvml 1")
	p.want(fmt.Sprintf("0 %d %d %d", 3*gib, 4*int64(gib), gib), "nvml 2")
}

func TestGPUsAreToldApart(t *testing.T) {
	dir := container(t, Cap{second, 2 * gib})
	p := run(t, dir, "link")
	p.want(ok, "alloc m %d", 50*int64(gib)) // the first GPU has no limit
	p.want(fmt.Sprintf("0 %d %d %d", 14*int64(gib), 64*int64(gib), 64*int64(gib)), "info")
	p.want("0", "device 1")
	p.want(full, "alloc m %d", 3*gib)
	p.want(full, "alloc create %d", 3*gib) // this call names its device
	p.want(ok, "alloc m %d", 2*gib)
	p.want(ok, "alloc host %d", 3*gib) // not GPU memory
	p = run(t, container(t, Cap{first, gib}, Cap{second, 2 * gib}), "link")
	p.want(ok, "alloc m %d", gib)
	p.want(full, "alloc m 1")
	p.want("0", "device 1")
	p.want(ok, "alloc m %d", 2*gib)
	p.want(full, "alloc m 1")
}

func TestProcessesShareALimit(t *testing.T) {
	dir := container(t, Cap{first, gib})
	a, b := run(t, dir, "dlsym"), run(t, dir, "proc")
	a.want(ok, "alloc m %d", 700*mib)
	b.want(full, "alloc m %d", 400*mib)
	b.want(ok, "alloc m %d", 300*mib)
	a.want(full, "alloc m %d", 100*mib)
	b.want(ok, "free -1")
	a.want(ok, "alloc m %d", 100*mib)
}

func TestKillGivesBack(t *testing.T) {
	dir := container(t, Cap{first, gib})
	a, b := run(t, dir, "link"), run(t, dir, "link")
	for range 3 {
		a.want(ok, "alloc m %d", 900*mib)
		b.want(full, "alloc m %d", 200*mib)
		a.kill()
		b.want(fmt.Sprintf("0 %d %d %d", gib, gib, gib), "info")
		a = run(t, dir, "link")
	}
	b.want(ok, "alloc m %d", 900*mib)
	a.want(full, "alloc m %d", 200*mib)
}

// A container can contain other containers, in which processes have other pids.
func TestKillInAnotherNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes namespaces")
	}
	dir := container(t, Cap{first, gib})
	a := run(t, dir, "link")
	a.want(ok, "alloc m %d", 100*mib)
	unshare := exec.Command("unshare", "--pid", "--fork", "--kill-child", filepath.Join(built, "probe"), "link")
	b := start(t, unshare, filepath.Join(dir, Library))
	b.want(ok, "alloc m %d", 700*mib)
	for range 3 { // each checks whether the other one is alive
		a.want(full, "alloc m %d", 300*mib)
		b.want(full, "alloc m %d", 300*mib)
	}
	b.kill()
	wait.Until(t, "the memory of a killed process is free", func() bool { return a.ask("alloc m %d", 900*mib) == ok })
}

func TestAnotherProgramInItsPlace(t *testing.T) {
	dir := container(t, Cap{first, gib})
	a, b := run(t, dir, "dlsym"), run(t, dir, "link")
	a.want(ok, "alloc m %d", 700*mib)
	a.want("again", "exec")
	b.want(ok, "alloc m %d", 700*mib)
	a.want(full, "alloc m %d", 700*mib)
}

// Killing a process during calls leaves a counter that others can use.
func TestKillInTheMiddle(t *testing.T) {
	dir := container(t, Cap{first, gib})
	watch := run(t, dir, "link")
	watch.want(ok, "alloc m %d", 500*mib)
	for range 20 {
		busy := run(t, dir, "link")
		busy.want(ok, "alloc m %d", 100*mib) // it is running
		fmt.Fprintf(busy.in, "threads 4 100000000 %d\n", 50*mib)
		for range 20 {
			watch.ask("alloc m %d", mib)
			watch.ask("free -1")
		}
		busy.kill()
	}
	watch.want(fmt.Sprintf("0 %d %d %d", 524*mib, gib, gib), "info")
	watch.want(ok, "alloc m %d", 524*mib)
}

func TestThreads(t *testing.T) {
	const limit = 100 * mib
	p := run(t, container(t, Cap{first, limit}), "proc2")
	var peak int
	var refused string
	if _, err := fmt.Sscan(p.ask("threads 16 2000 %d", 7*mib), &peak, &refused); err != nil {
		t.Fatal(err)
	}
	if peak > limit || peak < limit-7*mib || refused != "refused" {
		t.Errorf("16 threads held %d of %d at most, and were %s", peak, limit, refused)
	}
	p.want(fmt.Sprintf("0 %d %d %d", limit, limit, limit), "info")
}

func TestFreesThatAreNone(t *testing.T) {
	p := run(t, container(t, Cap{first, gib}), "dlsym")
	p.want(ok, "alloc m %d", 600*mib)
	p.want(ok, "alloc m %d", 300*mib)
	p.want(ok, "free 1")
	p.want(invalid, "free 1") // freed twice
	p.want(invalid, "foreign")
	p.want(fmt.Sprintf("0 %d %d %d", 424*mib, gib, gib), "info")
	p.want(full, "alloc m %d", 500*mib)
	p.want(ok, "free 0")
	p.want(ok, "alloc m %d", gib)
}

func TestFork(t *testing.T) {
	p := run(t, container(t, Cap{first, gib}), "link")
	p.want(ok, "alloc m %d", 600*mib)
	p.want(full, "fork %d", 500*mib)
	for range 3 {
		p.want(ok, "fork %d", 400*mib) // and exits without freeing it
	}
	p.want(ok, "alloc m %d", 400*mib)
}

// Mapped memory is in use until it is both released and unmapped, and most programs release it
// first.
func TestMappedMemory(t *testing.T) {
	for _, how := range ways {
		p := run(t, container(t, Cap{first, gib}), how)
		left := func(n int) {
			t.Helper()
			p.want(fmt.Sprintf("0 %d %d %d", n, gib, gib), "info")
		}
		const here = 1 << 40
		p.want(ok, "alloc create %d", 300*mib)
		p.want(ok, "map 0 %d %d", here, 100*mib)
		p.want(ok, "map 0 %d %d", here+100*mib, 200*mib)
		p.want(ok, "free 0")
		left(724 * mib)
		p.want(full, "alloc memory %d", 800*mib)
		p.want(invalid, "unmap %d %d", here+500*mib, mib)
		p.want(ok, "alloc create %d", 24*mib) // which may get the number of a released handle
		left(700 * mib)
		p.want(ok, "unmap %d %d", here, 100*mib)
		left(700 * mib)
		p.want(ok, "retain %d", here+100*mib)
		p.want(ok, "unmap %d %d", here+100*mib, 200*mib)
		left(700 * mib)
		p.want(ok, "free 2")
		left(1000 * mib)
		p.want(ok, "map 1 %d %d", here, 24*mib)
		p.want(ok, "unmap %d %d", here, 24*mib)
		left(1000 * mib)
		p.want(ok, "free 1")
		p.want(invalid, "free 1")
		left(gib)
		p.want(ok, "alloc create %d", 500*mib) // unmaps two mappings in one call
		p.want(ok, "map -1 %d %d", here, 200*mib)
		p.want(ok, "map -1 %d %d", here+200*mib, 300*mib)
		p.want(ok, "free -1")
		left(524 * mib)
		p.want(ok, "unmap %d %d", here, 500*mib)
		left(gib)
	}
}

// A call that the driver refuses does not change the counter.
func TestDriverRefuses(t *testing.T) {
	p := run(t, container(t, Cap{first, 70 * gib}), "link")
	p.want(ok, "alloc m %d", 60*int64(gib))
	p.want(full, "alloc m %d", 8*int64(gib)) // below the limit, but more than the GPU has
	p.want(ok, "free -1")
	p.want(ok, "alloc m %d", 64*int64(gib))

	p = run(t, container(t, Cap{first, gib}), "dlsym")
	left := func(n int) {
		t.Helper()
		p.want(fmt.Sprintf("0 %d %d %d", n, gib, gib), "info")
	}
	const here = 1 << 40
	p.want(ok, "alloc m %d", 600*mib)
	p.want("0", "refuse 1")
	p.want(invalid, "free 0")
	left(424 * mib)
	p.want(full, "alloc m %d", 500*mib)
	p.want(ok, "free -1")
	left(gib)
	p.want(ok, "alloc create %d", 300*mib)
	p.want(ok, "map -1 %d %d", here, 300*mib)
	p.want("0", "refuse 1")
	p.want(invalid, "unmap %d %d", here, 300*mib)
	p.want(ok, "free -1")
	left(724 * mib)
	p.want(ok, "unmap %d %d", here, 300*mib)
	left(gib)
}

func TestContextsTakeTheirMemoryAlong(t *testing.T) {
	// The linked symbol, the symbol with the plain name, and the symbols for programs of CUDA 7 and
	// 12. CUDA's runtime 13 also requests those of 7.
	for _, form := range []int{0, 1, 7000, 12000} {
		t.Run(strconv.Itoa(form), func(t *testing.T) { testContexts(t, form) })
	}
}

func testContexts(t *testing.T, form int) {
	p := run(t, container(t, Cap{first, gib}), "link")
	p.want(ok, "alloc m %d", 300*mib) // of the primary context
	p.want(ok, "context")
	p.want(ok, "alloc m %d", 600*mib)
	p.want(full, "alloc m %d", 600*mib)
	p.want(ok, "destroy %d", form)
	p.want("0", "device 0")
	p.want(fmt.Sprintf("0 %d %d %d", 724*mib, gib, gib), "info")
	p.want("0", "release %d", form) // one of two references
	p.want(fmt.Sprintf("0 %d %d %d", 724*mib, gib, gib), "info")
	p.want("0", "reset %d", form)
	p.want(fmt.Sprintf("0 %d %d %d", gib, gib, gib), "info")
	p.want("0", "device 0")
	p.want(ok, "alloc m %d", gib)
	p.want("0", "release %d", form)
	p.want(fmt.Sprintf("0 %d %d %d", gib, gib, gib), "info")
}

// A variant of a call that the library does not know is passed to the driver.
func TestUnknownFormsGoThrough(t *testing.T) {
	p := run(t, container(t, Cap{first, 1}), "link")
	p.want(ok, "future")
	p.want(full, "alloc async %d", mib)
}

func TestBrokenLimit(t *testing.T) {
	edit := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	var many strings.Builder
	for i := range 17 {
		fmt.Fprintf(&many, "GPU-%d 1\n", i)
	}
	for name, tc := range map[string]struct {
		spoil func(dir string) error
		why   string
	}{
		"no file":       {remove("limits"), "limits: No such file"},
		"words":         {edit("limits", "much\n"), "limits: a line is not"},
		"not a number":  {edit("limits", first+" 12GiB\n"), "limits: a limit is not a number"},
		"negative":      {edit("limits", first+" -1\n"), "limits: a limit is not a number"},
		"nothing":       {edit("limits", first+" \n"), "limits: a line is not"},
		"huge":          {edit("limits", first+" 99999999999999999999\n"), "limits: a limit is too large"},
		"twice":         {edit("limits", first+" 1\n"+first+" 2\n"), "limits: a GPU is there twice"},
		"cut off":       {edit("limits", first+" 10737"), "limits: the file does not end"},
		"empty":         {edit("limits", ""), "limits: the file does not end"},
		"many":          {edit("limits", many.String()), "limits: there are too many GPUs"},
		"long":          {edit("limits", strings.Repeat("x", 5000)), "limits: the file is too long"},
		"no counter":    {remove("usage"), "usage: No such file"},
		"short counter": {edit("usage", "short"), "usage: the file is too short"},
		"other counter": {edit("usage", strings.Repeat("x", counterBytes)), "usage: the file is of another version"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := container(t, Cap{first, gib})
			if err := tc.spoil(dir); err != nil {
				t.Fatal(err)
			}
			p := run(t, dir, "proc2")
			for _, kind := range []string{"memory", "async", "create", "rarray"} {
				p.want(full, "alloc %s %d", kind, mib)
			}
			p.kill()
			if said := p.stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, tc.why) {
				t.Errorf("on standard error: %q, want one line with %q", said, tc.why)
			}
		})
	}
}

// Other preloaded libraries still find the next function of the same name after themselves.
func TestOtherPreloads(t *testing.T) {
	other := filepath.Join(built, "bystander.so")
	for _, before := range []bool{true, false} {
		dir := container(t, Cap{first, gib})
		preload := []string{other}
		if !before {
			preload = []string{filepath.Join(dir, Library), other}
		}
		p := run(t, dir, "dlsym", preload...)
		p.want(ok, "alloc m %d", 700*mib)
		p.want(full, "alloc m %d", 700*mib)
	}
}

// The library can be loaded in images that are older than the build machine.
func TestOldGlibc(t *testing.T) {
	out, err := exec.Command("objdump", "-T", filepath.Join(built, Library)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var needs []string
	for _, m := range regexp.MustCompile(`GLIBC_2\.(\d+)`).FindAllStringSubmatch(string(out), -1) {
		var minor int
		fmt.Sscan(m[1], &minor)
		if minor > 17 && !slices.Contains(needs, m[0]) {
			needs = append(needs, m[0])
		}
	}
	if len(needs) > 0 {
		t.Errorf("the library needs %v", needs)
	}
}

func TestApplyTwiceKeepsTheCount(t *testing.T) {
	dir := container(t, Cap{first, gib})
	p := run(t, dir, "link")
	p.want(ok, "alloc m %d", 900*mib)
	if err := write(dir, []Cap{{first, gib}}); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "link").want(full, "alloc m %d", 200*mib)
}

// BenchmarkPair measures an allocation and its free with a fake driver, which does almost nothing,
// without and with the library.
func BenchmarkPair(b *testing.B) {
	for _, with := range []bool{false, true} {
		name, dir := "driver", ""
		if with {
			name = "limited"
		}
		b.Run(name, func(b *testing.B) {
			if with {
				dir = container(b, Cap{first, gib})
			}
			p := run(b, dir, "proc2")
			b.ResetTimer()
			p.ask("bench %d", b.N)
		})
	}
}

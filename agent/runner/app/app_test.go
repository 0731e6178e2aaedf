package app

import (
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/appstate"
)

// The test program also runs as the supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "app" {
		parents = []string{os.Getenv("BERTH_TEST_APPS")}
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// inside sets a state directory for the test, and ends its apps.
func inside(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("BERTH_TEST_APPS", dir)
	before := parents
	parents = []string{dir}
	t.Cleanup(func() {
		s, err := Survey(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range s.Apps {
			if _, err := Stop(a.Name); err != nil {
				t.Error(err)
			}
		}
		parents = before
	})
}

func shell(name, script string) appstate.Spec {
	return appstate.Spec{Name: name, Command: []string{"/bin/sh", "-c", script}, Environment: map[string]string{"WORD": "hello"}}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

func TestAppRunsOnceAndIsStopped(t *testing.T) {
	inside(t)
	var wg sync.WaitGroup
	pids := make([]int, 8)
	for i := range pids {
		wg.Go(func() {
			st, err := Start(shell("desk", "echo $WORD; exec sleep 1000"))
			if err != nil {
				t.Error(err)
			}
			if pids[i] = st.Pid; !st.Running {
				t.Errorf("after the start: %+v", st)
			}
		})
	}
	wg.Wait()
	st, err := Status("desk")
	if err != nil || !st.Running || st.Pid == 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	for _, pid := range pids {
		if pid != 0 && pid != st.Pid { // 0: another start was in progress
			t.Errorf("supervisor %d runs beside %d", pid, st.Pid)
		}
	}
	eventually(t, "the output", func() bool { text, _ := Tail("desk", 100); return string(text) == "hello\n" })
	if text, err := Tail("desk", 3); err != nil || string(text) != "lo\n" {
		t.Errorf("the last bytes: %q, %v", text, err)
	}
	if st, err := Stop("desk"); err != nil || st.Running || st.Exit != 128+15 {
		t.Errorf("stopped: %+v, %v", st, err)
	}
	if st, err := Start(shell("desk", "exit 3")); err != nil || st.Started.IsZero() {
		t.Errorf("a second start: %+v, %v", st, err)
	}
	eventually(t, "the end", func() bool {
		st, _ := Status("desk")
		return !st.Running && st.Exit == 3 && strings.Contains(st.Reason, "exit code 3")
	})
}

func TestProgramThatIsMissing(t *testing.T) {
	inside(t)
	st, err := Start(appstate.Spec{Name: "gone", Command: []string{"/no/such/program"}})
	if err != nil || st.Running || st.Exit != 127 || !strings.Contains(st.Reason, "/no/such/program") {
		t.Errorf("%+v, %v", st, err)
	}
	for _, bad := range []string{"", "UP", "a--b", "-a", "8080", "../x", strings.Repeat("a", appstate.MaxName+1)} {
		if _, err := Start(shell(bad, "true")); err == nil {
			t.Errorf("%q is accepted as a name", bad)
		}
	}
}

func TestProcessesLeftBehindAreKilled(t *testing.T) {
	inside(t)
	if _, err := Start(shell("messy", "sleep 1000 & echo $!; exit 0")); err != nil {
		t.Fatal(err)
	}
	var pid string
	eventually(t, "the end of both", func() bool {
		text, _ := Tail("messy", 100)
		pid = strings.TrimSpace(string(text))
		st, _ := Status("messy")
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return pid != "" && !st.Running && (err != nil || strings.Contains(string(stat), ") Z "))
	})
}

func TestLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	l, err := newLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	line := []byte(strings.Repeat("x", 999) + "\n")
	for range 2000 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	for _, name := range []string{logFile, previousFile} {
		st, err := os.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	if total > 2*maxLog || total < maxLog {
		t.Errorf("the log has %d bytes", total)
	}
}

func TestStateIsPrivate(t *testing.T) {
	inside(t)
	path := parents[0] + "/planted"
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := private(path); err == nil {
		t.Error("a directory that others can write is accepted")
	}
	link := parents[0] + "/link"
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := private(link); err == nil {
		t.Error("a link is accepted")
	}
}

func TestPortsThatListen(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	list, err := Ports()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(p appstate.Port) bool { return p.Port == port })
	if i < 0 || list[i].Program == "" {
		t.Errorf("port %d with its program is not in %v", port, list)
	}
}

func TestPortsOfATable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:22B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12 1
   2: 0100007F:0016 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 13 1
   3: 0200000A:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 14 1
`
	got := map[int]string{}
	if err := parsePorts(strings.NewReader(table), got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[8888] != "11" || got[8080] != "12" {
		t.Errorf("%v", got)
	}
}

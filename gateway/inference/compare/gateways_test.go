package compare

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthhq/berth/gateway/inference"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/modelmock"
)

// The engine and the router run as processes of their own: this test program with these variables.
const (
	asEngine = "BERTH_BENCH_ENGINE" // tokens per second of an answer
	asRouter = "BERTH_BENCH_ROUTER" // address of the engine
	asBare   = "BERTH_BENCH_BARE"   // address of the engine, for a reverse proxy of the standard library
)

func TestMain(m *testing.M) {
	var h http.Handler
	switch {
	case os.Getenv(asEngine) != "":
		rate, _ := strconv.ParseFloat(os.Getenv(asEngine), 64)
		h = modelmock.New(modelmock.Config{Decode: rate, MaxRunning: 10_000})
	case os.Getenv(asRouter) != "":
		h = inference.New(inference.Config{Models: oneModel(os.Getenv(asRouter))})
	case os.Getenv(asBare) != "":
		h = &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: os.Getenv(asBare)}) },
			Transport: transport(), FlushInterval: -1,
		}
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[1], h))
	os.Exit(1)
}

// models is the one model of the router.
type models struct{ access *inference.Access }

func oneModel(engine string) models {
	m := inference.NewModel("mock", nil)
	m.Update(inference.Target{ID: "r", Weight: 1, Transport: to{engine, transport()}})
	return models{&inference.Access{Model: m, Tenant: "t", Count: func(inference.Record) {}}}
}

func transport() *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1000}
}

func (m models) Open(context.Context, string, string, modelapi.API) (*inference.Access, error) {
	return m.access, nil
}
func (m models) Names(context.Context, string) ([]string, error) { return []string{"mock"}, nil }

// to is the transport to a host.
type to struct {
	host string
	next http.RoundTripper
}

func (t to) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = t.host
	return t.next.RoundTrip(r)
}

// gateway is a program in front of the engine.
type gateway struct {
	name string
	// argv returns the program for an address and that of the engine. It can write files to the folder.
	argv func(dir, at, engine string) []string
}

const litellm = "../../../bin/tools/litellm/bin/litellm"

var gateways = []gateway{
	{"router", func(_, at, engine string) []string { return []string{"env", asRouter + "=" + engine, os.Args[0], at} }},
	{"net-http", func(_, at, engine string) []string { return []string{"env", asBare + "=" + engine, os.Args[0], at} }},
	{"nginx", func(dir, at, engine string) []string {
		return []string{"/usr/sbin/nginx", "-p", dir, "-e", dir + "/error.log", "-c", written(dir, "nginx.conf", fmt.Sprintf(nginxConf, dir, at, engine))}
	}},
	{"haproxy", func(dir, at, engine string) []string {
		return []string{"/usr/sbin/haproxy", "-db", "-f", written(dir, "haproxy.cfg", fmt.Sprintf(haproxyConf, at, engine))}
	}},
	{"litellm", func(dir, at, engine string) []string {
		host, port, _ := net.SplitHostPort(at)
		return []string{
			"env", "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_LOG=ERROR", "HOME=" + dir, litellm,
			"--config", written(dir, "litellm.yaml", fmt.Sprintf(litellmConf, engine)), "--host", host, "--port", port, "--num_workers", "2", "--telemetry", "False",
		}
	}},
}

const nginxConf = `daemon off; worker_processes 2; worker_rlimit_nofile 20000; user root; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream engine { server %[3]s; keepalive 256; }
  server { listen %[2]s; location / { proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 1h; } }
}`

const haproxyConf = `global
  nbthread 2
  maxconn 5000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  http-reuse always
frontend in
  bind %s
  default_backend engine
backend engine
  server one %s
`

const litellmConf = `model_list:
  - model_name: mock
    litellm_params: {model: openai/mock, api_base: "http://%s/v1", api_key: none}
`

func written(dir, name, text string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err.Error() // the program will say that there is no such file
	}
	return path
}

// start starts a gateway in front of an engine, and returns its address and process. It skips the benchmark if the
// program is not installed.
func (g gateway) start(b *testing.B, engine string) (string, int) {
	b.Helper()
	at := free(b)
	argv := g.argv(b.TempDir(), at, engine)
	program := argv[0]
	for _, a := range argv[1:] {
		if program != "env" && !strings.Contains(program, "=") {
			break
		}
		program = a
	}
	if _, err := os.Stat(program); err != nil {
		fmt.Fprintf(os.Stderr, "%s is skipped: it is not installed, `make bench-gateways` does that (%v)\n", g.name, err)
		b.SkipNow()
	}
	return at, background(b, at, argv...)
}

// engine starts an engine that decodes so many tokens per second, and returns its address.
func engine(b *testing.B, decode string) string {
	b.Helper()
	at := free(b)
	background(b, at, "env", asEngine+"="+decode, os.Args[0], at)
	return at
}

func free(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// background starts a program that listens at an address, in a process group of its own.
func background(b *testing.B, at string, argv ...string) int {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return cmd.Process.Pid
		}
	}
	text, _ := os.Open(log.Name())
	said, _ := io.ReadAll(text)
	b.Fatalf("%s does not listen: %s", argv, said)
	return 0
}

// processes returns the processes of a group.
func processes(group int) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		if f := stat(path); len(f) > 2 && f[2] == strconv.Itoa(group) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns the fields of a process after its name: its state, its parent, its group and others.
func stat(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// busy returns the CPU time of a group of processes.
func busy(group int) (all time.Duration) {
	for _, pid := range processes(group) {
		f := stat(fmt.Sprintf("/proc/%d/stat", pid))
		if len(f) < 13 {
			continue
		}
		for _, ticks := range f[11:13] {
			n, _ := strconv.Atoi(ticks)
			all += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return all
}

// memory returns the memory of a group of processes in bytes. Shared pages count once.
func memory(group int) (all int) {
	for _, pid := range processes(group) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				n, _ := strconv.Atoi(f[1])
				all += n << 10
			}
		}
	}
	return all
}

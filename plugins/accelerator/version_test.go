package accelerator

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/process"
)

// speaks makes this test program a plugin that supports these versions, such as "1,2".
const speaks = "TEST_SPEAKS_VERSIONS"

func init() { // runs before TestMain, which belongs to the other test package here
	if list := os.Getenv(speaks); list != "" {
		speaking(list).Serve(func(s *grpc.Server) {
			acceleratorpb.RegisterAcceleratorServer(s, &acceleratorpb.UnimplementedAcceleratorServer{})
		})
		os.Exit(0)
	}
}

// speaking returns the contract of a host or plugin that supports these versions.
func speaking(list string) process.Contract {
	c := Contract()
	c.Versions = nil
	for v := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(err)
		}
		c.Versions = append(c.Versions, n)
	}
	return c
}

func TestVersionsAreAgreedOn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		host, plugin string
		want         int      // 0 = no common version
		names        []string // the error must contain these
	}{
		"same":              {host: "1", plugin: "1", want: 1},
		"newer host":        {host: "1,2", plugin: "1", want: 1},
		"newer plugin":      {host: "1", plugin: "1,2", want: 1},
		"highest of two":    {host: "1,2", plugin: "1,2", want: 2},
		"gap":               {host: "1,3", plugin: "1,2", want: 1},
		"plugin too new":    {host: "1", plugin: "2", names: []string{"2", "1"}},
		"host gave up on 1": {host: "2,3", plugin: "1", names: []string{"1", "2", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := process.Config(t.Context(), speaking(tc.host), Options{Path: self, Env: []string{speaks + "=" + tc.plugin}, StartTimeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Cmd.Env = append(cfg.Cmd.Env, plugin.EnvUnixSocketDir+"="+t.TempDir())
			c := plugin.NewClient(cfg)
			defer c.Kill()
			_, err = c.Start()
			if tc.want == 0 {
				if err == nil {
					t.Fatalf("agreed on %d", c.NegotiatedVersion())
				}
				for _, n := range tc.names {
					if !strings.Contains(err.Error(), n) {
						t.Errorf("the refusal does not name version %s: %v", n, err)
					}
				}
				return
			}
			if err != nil || c.NegotiatedVersion() != tc.want {
				t.Errorf("agreed on %d, %v, want %d", c.NegotiatedVersion(), err, tc.want)
			}
		})
	}
}

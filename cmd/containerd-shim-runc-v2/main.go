// Command containerd-shim-runc-v2 is the process that stays beside each container, in place of
// containerd's program of the same name. It consists of containerd's packages, but does not collect
// garbage while it is idle: containerd's shim does so every 30 s, which was most of the cost of an
// idle session. Users never call it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	"github.com/containerd/containerd/v2/pkg/shim"
)

const name = "io.containerd.runc.v2"

func main() {
	ctx := context.Background()
	s, ok := parse(os.Args[1:])
	if !ok {
		shim.RunShim(ctx, manager.NewShimManager(name))
		return
	}
	if err := s.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// parse reads the arguments of the process that stays, which the action start runs. For all other
// arguments it returns false, and containerd's code handles them: actions that end at once, and
// unknown ones.
func parse(args []string) (s server, ok bool) {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.namespace, "namespace", "", "")
	f.StringVar(&s.id, "id", "", "")
	f.StringVar(&s.containerd, "address", "", "")
	return s, f.Parse(args) == nil && f.NArg() == 0 && s.namespace != "" && s.id != ""
}

// Command berth-runner is the first process of every container and the writer of its log. It is
// static and small, and users never call it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/berthhq/berth/agent/runner"
	"github.com/berthhq/berth/agent/runner/app"
)

const usage = `berth-runner runs inside Berth's containers; the agent starts it.

  berth-runner init [COMMAND [ARG...]]   be process 1: run COMMAND, or idle
  berth-runner shell                     become the image's shell
  berth-runner sshd                      serve the channels of SSH on stdin and stdout
  berth-runner peers                     serve SSH to the other kernels of the session
  berth-runner scp -t|-f [OPTIONS] PATH  be the remote side of scp -O
  berth-runner files                     read and change files, on stdin and stdout
  berth-runner log BYTES:FILES:DIR       write descriptors 3 and 4 to DIR
` + app.Usage

func main() {
	args := os.Args[1:]
	switch {
	case len(args) >= 1 && args[0] == "init":
		os.Exit(runner.Init(args[1:]))
	case len(args) >= 1 && (args[0] == "sshd" || args[0] == "scp"):
		os.Exit(ssh(args))
	case len(args) == 1 && args[0] == "files":
		os.Exit(serveFiles())
	case len(args) == 1 && args[0] == "peers":
		os.Exit(servePeers())
	case len(args) == 1 && args[0] == "shell":
		os.Exit(runner.Shell())
	case len(args) == 2 && args[0] == "log":
		os.Exit(runner.Log(args[1]))
	case len(args) >= 1 && args[0] == "app":
		os.Exit(app.Main(args[1:]))
	case len(args) == 1 && args[0] == "ports":
		os.Exit(ports())
	}
	fmt.Fprint(os.Stderr, usage)
	os.Exit(2)
}

func ports() int {
	list, err := app.Ports()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

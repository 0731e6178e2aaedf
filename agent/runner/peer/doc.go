// Package peer connects the kernels of one session by SSH. The agent writes the keys, the client's
// configuration and the lists of kernels with it (Files); the runner serves the SSH server of a kernel
// to the other ones with it (Serve). No other session has the keys, and no other session's network
// reaches the server.
package peer

import (
	"time"

	"github.com/berthhq/berth/agent/runner"
)

// Dir is the directory in a container with the files of a session of several kernels.
const Dir = runner.ClusterPath

// Config is where OpenSSH's client looks for configuration of a system.
const Config = "/etc/ssh/ssh_config.d/00-berth.conf"

// Job is the file in which DeepSpeed looks for the kernels.
const Job = "/job/hostfile"

// Port of the server in each kernel. Users other than root cannot listen on port 22.
const Port = 2200

// Interface is the network interface of a container.
const Interface = "eth0"

// Names of the files.
const (
	Hostfile    = "hostfile"    // NAME slots=N, as Open MPI, Horovod and DeepSpeed read it
	Machinefile = "machinefile" // NAME:N, as MPICH and Intel MPI read it
	UserKey     = "id_ed25519"
	hostKey     = "host_ed25519"
	sshConfig   = "ssh_config"
	knownHosts  = "known_hosts"
)

// alias is the name of all kernels in the file of known hosts, because they have one host key.
const alias = "berth-session"

// Limits of the server.
const (
	maxConnections = 1000             // of a kernel, also those that have not logged in
	handshakeTime  = 30 * time.Second // until a client has logged in
)

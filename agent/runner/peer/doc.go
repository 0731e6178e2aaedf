// Package peer connects the kernels of one session by SSH. The agent uses Files to write the keys,
// the client's configuration and the lists of kernels; the runner uses Serve to run the SSH server
// of a kernel. Other sessions neither have the keys nor reach the server over the network.
package peer

import (
	"time"

	"github.com/berthhq/berth/agent/runner"
)

// Dir is the directory in a container with the files of a session of several kernels.
const Dir = runner.ClusterPath

// Config is a file that OpenSSH's client reads on most systems.
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
	maxConnections = 1000             // per kernel, before and after login
	handshakeTime  = 30 * time.Second // until a client has logged in
)

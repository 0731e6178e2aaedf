package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/e2e/cluster"
)

// The network links of the host do not change when a session starts and ends, because browsers on
// the same machine drop their requests when links change. Changes by other programs do not count.
func TestHostIsCalm(t *testing.T) {
	u := platform.User(t)
	first := u.Run(cluster.Interactive())
	u.Until(first.ID, "RUNNING")
	before, err := platform.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.SetReceiveTimeout(&unix.Timeval{Usec: int64(100 * time.Millisecond / time.Microsecond)}); err != nil {
		t.Fatal(err)
	}
	if err := socket.SetReceiveBufferSize(16<<20, true); err != nil {
		t.Fatal(err)
	}
	tag := before[0][3:8] // the part of an agent's link names that is the same for all: a prefix of three letters, this tag and a dash
	second := u.Run(cluster.Interactive())
	u.Until(second.ID, "RUNNING")
	if during, err := platform.Interfaces(); err != nil || len(during) != len(before)+2 {
		t.Errorf("links before: %v, during: %v, %v; want one more bridge and cable", before, during, err)
	}
	u.End(second.ID)
	u.End(first.ID)
	for {
		messages, _, err := socket.Receive()
		if err == unix.EAGAIN || err == unix.EINTR {
			break // no more links
		}
		if err != nil {
			t.Fatal(os.NewSyscallError("receive", err))
		}
		for _, m := range messages {
			if bytes.Contains(m.Data, []byte(tag)) {
				t.Errorf("the host sees a change of type %d: %q", m.Header.Type, m.Data)
			}
		}
	}
	if !slices.ContainsFunc(before, func(name string) bool { return strings.HasSuffix(name, "-up") }) {
		t.Error(fmt.Sprint("no uplink among ", before))
	}
}

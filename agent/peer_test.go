package agent_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runner/peer"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// cluster returns requests for the kernels of a session that has several.
func (n *node) cluster(secret byte, hosts ...string) (list []*agentpb.CreateKernelRequest) {
	c := &agentpb.KernelCluster{Secret: bytes.Repeat([]byte{secret}, peer.SecretSize)}
	for _, h := range hosts {
		c.Members = append(c.Members, &agentpb.KernelMember{Hostname: h, Slots: 1})
	}
	session := uuid.NewString()
	for _, h := range hosts {
		r := n.request()
		r.SessionId, r.Hostname, r.Cluster = session, h, c
		list = append(list, r)
	}
	return list
}

// The kernels of a session reach each other by SSH, and other kernels do not. The image contains
// one program and no /etc, and the container runs as a user that the image does not have.
func TestSSHBetweenKernels(t *testing.T) {
	n := newNode(t, v1.Config{Env: []string{"PATH=/bin"}})
	defer n.run(t)()
	n.pull(t)
	both, others, alone := n.cluster(1, "main", "sub1"), n.cluster(2, "main", "sub1"), n.request()
	for _, r := range append(append(both, others...), alone) {
		r.HasUser, r.Uid, r.Gid, r.Gids = true, 4321, 1234, []uint32{1234}
		n.start(t, r)
		defer n.end(t, r.KernelId, time.Second)
	}
	main, sub, stranger := n.ssh(t, both[0].KernelId), n.ssh(t, both[1].KernelId), n.ssh(t, others[0].KernelId)
	n.peerFiles(t, both[0].KernelId, main)
	key := sessionKey(t, main)

	at := n.address(t, both[0].KernelId, "sub1") + ":" + strconv.Itoa(peer.Port)
	wait.Until(t, "the server in sub1 answers", func() bool {
		c, err := hop(main, at, key)
		if err != nil {
			return false
		}
		defer c.Close()
		return runs(c, "/bin/prog id") == "4321 1234\n"
	})
	if _, err := hop(main, at, sessionKey(t, stranger)); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("the key of another session: %v", err)
	}
	if conn, err := stranger.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("a kernel of another session reaches the server")
	}
	// The port is not on the loopback interface, so it is not listed as an app, and forwards to
	// loopback do not reach it.
	if conn, err := sub.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", peer.Port)); err == nil {
		conn.Close()
		t.Error("the server listens on loopback")
	}
	single := n.ssh(t, alone.KernelId)
	for _, address := range []string{"127.0.0.1", n.address(t, alone.KernelId, "main")} {
		if conn, err := single.Dial("tcp", fmt.Sprintf("%s:%d", address, peer.Port)); err == nil {
			conn.Close()
			t.Errorf("a session of one kernel has a server at %s", address)
		}
	}
	if out, code := n.exec(t, alone.KernelId, "", "ls", "/opt/berth/cluster"); code == 0 {
		t.Errorf("a session of one kernel has files: %s", out)
	}
	n.agentOfAHop(t, main, at, key)
}

// peerFiles checks the files of a kernel, and that only its user can read the keys.
func (n *node) peerFiles(t *testing.T, kernel string, c *ssh.Client) {
	t.Helper()
	if out, _ := n.exec(t, kernel, "", "cat", "/job/hostfile"); !strings.HasPrefix(out, "main slots=1\nsub1 slots=1\n") {
		t.Errorf("the file of hosts has %q", out)
	}
	if out, _ := n.exec(t, kernel, "", "cat", "/etc/ssh/ssh_config.d/00-berth.conf"); !strings.Contains(out, "Host main sub1\n") {
		t.Errorf("the client's configuration is %q", out)
	}
	if out, _ := n.exec(t, kernel, "", "cat", "/etc/passwd"); !strings.Contains(out, "work:x:4321:1234::/home/work:/bin/sh\n") {
		t.Errorf("the users are %q", out)
	}
	wait.Until(t, "the client's file includes the configuration", func() bool {
		out, code := n.exec(t, kernel, "", "cat", "/home/work/.ssh/config")
		return code == 0 && strings.HasPrefix(out, "Include /opt/berth/cluster/ssh_config\n")
	})
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	st, err := files.Stat("/opt/berth/cluster/id_ed25519")
	if err != nil {
		t.Fatal(err)
	}
	if owner := st.Sys().(*sftp.FileStat).UID; owner != 4321 || st.Mode().Perm() != 0o400 {
		t.Errorf("the key is %v of user %d", st.Mode(), owner)
	}
	if f, err := files.Create("/opt/berth/cluster/hostfile"); err == nil {
		f.Close()
		t.Error("the files can be changed")
	}
}

// agentOfAHop checks that the socket of an agent that is forwarded to a kernel is out of reach of its
// sibling, although both run as the same user.
func (n *node) agentOfAHop(t *testing.T, main *ssh.Client, at string, key ssh.Signer) {
	t.Helper()
	c, err := hop(main, at, key)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n.agents(t, c, main)
}

// address returns the address of a host as a kernel knows it.
func (n *node) address(t *testing.T, kernel, host string) (address string) {
	t.Helper()
	wait.Until(t, "the kernel has the address of "+host, func() bool {
		out, _ := n.exec(t, kernel, "", "cat", "/etc/hosts")
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 2 && f[1] == host {
				address = f[0]
			}
		}
		return address != ""
	})
	return address
}

// sessionKey reads the key with which a kernel logs in to its siblings.
func sessionKey(t *testing.T, c *ssh.Client) ssh.Signer {
	t.Helper()
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	f, err := files.Open("/opt/berth/cluster/id_ed25519")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// hop connects from a kernel to the server of another one.
func hop(from *ssh.Client, at string, key ssh.Signer) (*ssh.Client, error) {
	conn, err := from.Dial("tcp", at)
	if err != nil {
		return nil, err
	}
	c, channels, requests, err := ssh.NewClientConn(deadless{conn}, at, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// deadless is a connection through SSH, which has no deadlines.
type deadless struct{ net.Conn }

func (deadless) SetDeadline(time.Time) error      { return nil }
func (deadless) SetReadDeadline(time.Time) error  { return nil }
func (deadless) SetWriteDeadline(time.Time) error { return nil }

// runs runs a command and returns its output.
func runs(c *ssh.Client, command string) string {
	s, err := c.NewSession()
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	out, err := s.Output(command)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

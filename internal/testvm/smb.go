package testvm

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// SMBTools are the programs of a VM that mounts its own SMB share. SMBModules are its modules. The
// client looks up ciphers by name, so they are not among its dependencies.
var SMBTools = []string{"smbd", "smbpasswd"}

// SMBModules are the modules.
var SMBModules = []string{"cifs", "hmac", "cmac", "ecb", "ccm", "gcm", "ctr", "ghash-generic", "sha512_generic", "nls_utf8"}

// Settings of a share, and mount options, that preserve attributes of files: names that differ only
// by case and, in access control lists, modes and owners.
const (
	SMBKeeps = "case sensitive = yes\nvfs objects = acl_xattr\nacl_xattr:ignore system acls = yes"
	SMBKept  = "vers=3.1.1,hard,iocharset=utf8,modefromsid,idsfromsid,mfsymlinks"
)

// The share of ServeSMB.
const (
	smbShare    = "berth"
	smbPassword = "berth"
	smbTimeout  = time.Minute
)

// smbConfiguration has placeholders for smbd's state directory, the exported directory, and further
// settings of the share.
const smbConfiguration = `[global]
interfaces = lo
bind interfaces only = yes
smb ports = 445
server role = standalone server
disable netbios = yes
load printers = no
unix extensions = yes
log file = %[1]s/log
private dir = %[1]s
lock directory = %[1]s
state directory = %[1]s
cache directory = %[1]s
pid directory = %[1]s
ncalrpc dir = %[1]s/ncalrpc
[berth]
path = %[2]s
read only = no
%[3]s
`

// ServeSMB makes Samba export a directory of a VM that Boot started, to root only. It can be called
// once.
func ServeSMB(dir, settings string) error {
	state := filepath.Join(insideTmp, "samba")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return err
	}
	file := filepath.Join(state, "smb.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, smbConfiguration, state, dir, settings), 0o600); err != nil {
		return err
	}
	password := exec.Command("smbpasswd", "-c", file, "-a", "-s", "root")
	password.Stdin = bytes.NewBufferString(smbPassword + "\n" + smbPassword + "\n")
	if out, err := password.CombinedOutput(); err != nil {
		return fmt.Errorf("smbpasswd: %w: %s", err, out)
	}
	// The process ends with the VM.
	server := exec.Command("smbd", "--foreground", "--no-process-group", "--configfile="+file)
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for end := time.Now().Add(smbTimeout); ; {
		c, err := net.Dial("tcp", "127.0.0.1:445")
		if err == nil {
			return c.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("smbd ended: %w: %s", errors.Join(err, errors.New("it should run")), said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("smbd does not answer: %w", err)
		}
	}
}

// MountSMB mounts the share of ServeSMB.
func MountSMB(name, options string) (at string, err error) {
	at = Mounted(name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	data := "ip=127.0.0.1,user=root,pass=" + smbPassword + "," + options
	if err := unix.Mount(`//127.0.0.1/`+smbShare, at, "cifs", 0, data); err != nil {
		return "", fmt.Errorf("mount SMB with %s: %w", options, err)
	}
	return at, nil
}

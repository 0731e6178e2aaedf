package testvm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NFSModules are the modules of a VM that serves NFS to itself.
var NFSModules = []string{"nfsd", "nfsv4"}

const (
	nfsdDir  = "/proc/fs/nfsd"
	recovery = insideTmp + "/v4recovery" // the server's list of clients
	never    = 0x7fffffff                // expiry of the kernel's cache entries, in seconds since 1970

	// Flags of an export: clients on any port, no checks of subtrees, the root of the version 4
	// name space. Root is not mapped to another user.
	exportFlags = 0x2 | 0x400 | 0x2000
)

// ServeNFS makes the kernel of a VM that Boot started export a directory. It can be called once.
// There is no mountd, so all answers to the kernel's requests are written in advance; without
// rpcbind only version 4 works.
func ServeNFS(dir string) error {
	if err := unix.Mount("none", nfsdDir, "nfsd", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", nfsdDir, err)
	}
	if err := os.Mkdir(recovery, 0o700); err != nil {
		return err
	}
	return StartNFS(dir)
}

// StopNFS stops the server. Clients then wait for it.
func StopNFS() error { return os.WriteFile(nfsdDir+"/threads", []byte("0\n"), 0) }

// StartNFS restarts a stopped server.
func StartNFS(dir string) error {
	for _, w := range []struct{ file, text string }{
		{nfsdDir + "/nfsv4recoverydir", recovery},
		{"/proc/net/rpc/auth.unix.ip/channel", fmt.Sprintf("nfsd 127.0.0.1 %d berth", never)},
		{"/proc/net/rpc/nfsd.export/channel", fmt.Sprintf("berth %s %d %d 65534 65534 0", dir, never, exportFlags)},
		{"/proc/net/rpc/nfsd.fh/channel", fmt.Sprintf(`berth 1 \x00000000 %d %s`, never, dir)},
		{nfsdDir + "/versions", "-3 +4 +4.1 +4.2"},
		{nfsdDir + "/nfsv4leasetime", "10"},
		{nfsdDir + "/nfsv4gracetime", "10"},
		{nfsdDir + "/portlist", "tcp 2049"},
		{nfsdDir + "/threads", "4"},
		{nfsdDir + "/v4_end_grace", "Y"}, // no client has locks to reclaim
	} {
		// The kernel parses each write as one line.
		if err := os.WriteFile(w.file, []byte(w.text+"\n"), 0); err != nil {
			return fmt.Errorf("serve NFS: %q: %w", w.text, err)
		}
	}
	return nil
}

// MountNFS mounts the export of ServeNFS.
func MountNFS(name, options string) (at string, err error) {
	at = Mounted(name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	data := "proto=tcp,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1," + options
	if err := unix.Mount("127.0.0.1:/", at, "nfs4", 0, data); err != nil {
		return "", fmt.Errorf("mount NFS with %s: %w", data, err)
	}
	return at, nil
}

package app

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/appstate"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// loopback are the local addresses, as /proc/net writes them, that accept connections to the
// loopback interface: 127.0.0.1, 0.0.0.0, ::1, ::, and 127.0.0.1 as an IPv6 address.
var loopback = map[string]bool{
	"0100007F": true, "00000000": true,
	"00000000000000000000000001000000": true, "00000000000000000000000000000000": true,
	"0000000000000000FFFF00000100007F": true,
}

// Ports returns the TCP ports that listen on loopback, sorted, with the names of their programs if
// this user can read them.
func Ports() ([]appstate.Port, error) {
	inodes := map[int]string{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return nil, err
		}
		err = parsePorts(f, inodes)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	programs := holders()
	ports := make([]appstate.Port, 0, len(inodes))
	for port, inode := range inodes {
		ports = append(ports, appstate.Port{Port: port, Program: programs["socket:["+inode+"]"]})
	}
	slices.SortFunc(ports, func(a, b appstate.Port) int { return cmp.Compare(a.Port, b.Port) })
	return ports, nil
}

// parsePorts adds the inodes of the listening sockets of a table, by port.
func parsePorts(table io.Reader, inodes map[int]string) error {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != listening {
			continue
		}
		address, hex, _ := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err != nil || !loopback[strings.ToUpper(address)] {
			continue
		}
		inodes[int(port)] = f[9]
	}
	return lines.Err()
}

// holders returns the names of processes by the sockets that they have open. Processes of other users
// are skipped.
func holders() map[string]string {
	names := map[string]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(link)), "comm"))
		if err == nil {
			names[target] = strings.TrimSpace(string(comm))
		}
	}
	return names
}

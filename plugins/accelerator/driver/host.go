package driver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Host provides access to the machine below the roots that the agent specifies.
type Host struct {
	sys, dev, proc, root, state string
	path                        []string
	// Fresh is how long an output of Ask can be reused.
	Fresh time.Duration
	said  answers
}

// fresh is shorter than the interval of scans.
const fresh = time.Second

// NewHost returns a Host with the usual directories for roots that are empty.
func NewHost(r *pb.Roots) *Host {
	h := &Host{
		sys: cmp.Or(r.GetSys(), "/sys"), dev: cmp.Or(r.GetDev(), "/dev"), proc: cmp.Or(r.GetProc(), "/proc"),
		root: cmp.Or(r.GetDriver(), "/"), state: r.GetState(), path: r.GetPath(), Fresh: fresh,
	}
	if len(h.path) == 0 {
		h.path = filepath.SplitList(os.Getenv("PATH"))
	}
	return h
}

// Sys returns a path below /sys, Dev below /dev, Proc below /proc, Root below the root of the
// driver's programs and libraries, and State below the plugin's persistent directory.
func (h *Host) Sys(elem ...string) string { return filepath.Join(append([]string{h.sys}, elem...)...) }
func (h *Host) Dev(elem ...string) string { return filepath.Join(append([]string{h.dev}, elem...)...) }
func (h *Host) Proc(elem ...string) string {
	return filepath.Join(append([]string{h.proc}, elem...)...)
}
func (h *Host) Root(elem ...string) string {
	return filepath.Join(append([]string{h.root}, elem...)...)
}
func (h *Host) State(elem ...string) string {
	return filepath.Join(append([]string{h.state}, elem...)...)
}

// maxFile limits the bytes read from one file: attributes are short, and tables are not long.
const maxFile = 64 << 10

// Read returns the text of a small file without surrounding white space. It opens regular files
// only, because a pipe or a device in place of an attribute would block it.
func Read(elem ...string) (string, error) {
	path := filepath.Join(elem...)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", filepath.Base(path), errors.Unwrap(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", filepath.Base(path), errors.Unwrap(err))
	case len(raw) > maxFile:
		return "", fmt.Errorf("%s is longer than %d bytes", filepath.Base(path), maxFile)
	case !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0):
		return "", fmt.Errorf("%s is not text", filepath.Base(path))
	}
	return strings.TrimSpace(string(raw)), nil
}

// Text returns the text of a file as one clean line of at most 100 characters, or "" if it cannot
// be read.
func Text(elem ...string) string {
	s, err := Read(elem...)
	if err != nil {
		return ""
	}
	return Clean(s, 100)
}

// Uint reads a number, decimal or hexadecimal with 0x.
func Uint(elem ...string) (uint64, error) {
	s, err := Read(elem...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q, not a number", filepath.Base(elem[len(elem)-1]), Clean(s, 40))
	}
	return n, nil
}

// Float reads a decimal fraction.
func Float(elem ...string) (float64, error) {
	s, err := Read(elem...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n != n || n > 1e18 || n < -1e18 {
		return 0, fmt.Errorf("%s is %q, not a number", filepath.Base(elem[len(elem)-1]), Clean(s, 40))
	}
	return n, nil
}

// Names returns the sorted names in a directory, at most 4096, or none if it does not exist.
func Names(elem ...string) []string {
	f, err := os.Open(filepath.Join(elem...))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(4096)
	natural(names)
	return names
}

// Exists reports whether a path exists.
func Exists(elem ...string) bool {
	_, err := os.Stat(filepath.Join(elem...))
	return err == nil
}

// Node returns the edit that gives a container a device file of the host, with the same name below
// /dev. It includes the device numbers, so that the agent need not look them up and the edit stays
// valid if the file is recreated.
func (h *Host) Node(name string) (*pb.DeviceNode, error) {
	n := &pb.DeviceNode{Path: filepath.Join("/dev", name), HostPath: h.Dev(name), Permissions: "rw"}
	var st syscall.Stat_t
	if err := syscall.Stat(n.HostPath, &st); err != nil {
		return nil, fmt.Errorf("/dev/%s: %w", name, err)
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFCHR:
		n.Type = pb.DeviceNode_CHAR
	case syscall.S_IFBLK:
		n.Type = pb.DeviceNode_BLOCK
	default:
		return nil, fmt.Errorf("/dev/%s is not a device", name)
	}
	// These shifts are the kernel's encoding of a device number.
	n.Major = uint32(st.Rdev>>8&0xfff | st.Rdev>>32&^0xfff)
	n.Minor = uint32(st.Rdev&0xff | st.Rdev>>12&0xffffff00)
	return n, nil
}

// Group returns the owning group of a device file, or 0 if the file does not exist.
func (h *Host) Group(name string) uint32 {
	var st syscall.Stat_t
	if syscall.Stat(h.Dev(name), &st) != nil {
		return 0
	}
	return st.Gid
}

// sensors are the divisors of the kernel's units: thousandths of degrees, millionths of watts.
var sensors = map[string]float64{"temp": 1000, "power": 1_000_000}

// Sensor reads the first temperature ("temp", in celsius) or power ("power", in watt) from the
// kernel's hwmon directory of a device, and its limit: the critical one, else the maximum, or 0 if
// there is none.
func Sensor(dir, kind string) (value, limit float64, err error) {
	err = fs.ErrNotExist
	for _, name := range Names(dir, "hwmon") {
		at := filepath.Join(dir, "hwmon", name, kind+"1")
		for _, input := range []string{"_input", "_average"} {
			if Exists(at + input) {
				value, err = Float(at + input)
				for _, most := range []string{"_max", "_crit"} {
					if top, err := Float(at + most); err == nil && top > 0 {
						limit = top / sensors[kind]
					}
				}
				return value / sensors[kind], limit, err
			}
		}
	}
	return 0, 0, err
}

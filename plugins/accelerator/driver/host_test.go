package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/testenv/wait"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// tree creates files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadRefusesWhatIsNoAttribute(t *testing.T) {
	dir := tree(t, map[string]string{
		"good": " 42 \n", "hex": "0x2a\n", "bad": "forty-two", "binary": "\xff\xfe", "zero": "4\x002", "long": strings.Repeat("x", 70_000),
	})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "hex"} {
		if n, err := driver.Uint(dir, name); n != 42 || err != nil {
			t.Errorf("%s is %d, %v", name, n, err)
		}
	}
	for name, want := range map[string]string{
		"bad": "forty-two", "binary": "is not text", "zero": "is not text", "long": "longer", "pipe": "is not a regular file", "missing": "no such file", "": "is not a regular file",
	} {
		if _, err := driver.Uint(dir, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestPCIFindsPlaces(t *testing.T) {
	dir := tree(t, map[string]string{
		"devices/pci0000:00/0000:00:01.0/0000:01:00.0/vendor":    "0x1002\n",
		"devices/pci0000:00/0000:00:01.0/0000:01:00.0/device":    "0x74A1\n",
		"devices/pci0000:00/0000:00:01.0/0000:01:00.0/numa_node": "1\n",
		"devices/pci0000:80/0000:81:00.0/vendor":                 "0x1002\n",
		"devices/pci0000:80/0000:81:00.0/numa_node":              "-1\n",
		"devices/pci0000:80/0000:82:00.0/vendor":                 "0x10de\n",
		"bus/pci/devices/junk":                                   "",
	})
	for to, from := range map[string]string{
		"../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0": "0000:01:00.0",
		"../../../devices/pci0000:80/0000:81:00.0":              "0000:81:00.0", "../../../devices/pci0000:80/0000:82:00.0": "0000:82:00.0",
	} {
		if err := os.Symlink(to, filepath.Join(dir, "bus/pci/devices", from)); err != nil {
			t.Fatal(err)
		}
	}
	all := driver.NewHost(&pb.Roots{Sys: dir}).PCI("1002")
	var got []string
	for _, d := range all {
		got = append(got, fmt.Sprint(d.Address, d.Device, " ", d.Root, " ", d.NUMA))
	}
	if want := []string{"0000:01:00.074a1 pci0000:00 1", "0000:81:00.0 pci0000:80 -1"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestPCIIsInOrderOfAddresses(t *testing.T) {
	files := map[string]string{}
	want := []string{"0000:03:00.0", "0000:0b:00.0", "0000:10:00.0", "0000:23:00.0", "0000:2a:00.0", "0000:a3:00.0", "10000:01:00.0"}
	for _, address := range want {
		files["bus/pci/devices/"+address+"/vendor"] = "0x1de0\n"
	}
	var got []string
	for _, d := range driver.NewHost(&pb.Roots{Sys: tree(t, files)}).PCI("1de0") {
		got = append(got, d.Address)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNamesAreInNaturalOrder(t *testing.T) {
	dir := tree(t, map[string]string{"npu10": "", "npu9": "", "npu1": "", "npu11": "", "a": "", "npu9pe2": "", "npu9pe10": ""})
	want := []string{"a", "npu1", "npu9", "npu9pe2", "npu9pe10", "npu10", "npu11"}
	if got := driver.Names(dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRun runs programs that fail, print without end, hang, and leave children.
func TestRun(t *testing.T) {
	left := filepath.Join(t.TempDir(), "pid")
	dir := tree(t, map[string]string{
		"good": "#!/bin/sh\necho \"$@\"\n", "fails": "#!/bin/sh\necho broken >&2; exit 3\n",
		"floods": "#!/bin/sh\nyes\n", "hangs": "#!/bin/sh\nsleep 3600 & echo $! >" + left + "\nwait\n",
	})
	h := driver.NewHost(&pb.Roots{Path: []string{dir}})
	if out, err := h.Run(t.Context(), "good", "-j", "x"); string(out) != "-j x\n" || err != nil {
		t.Errorf("good: %q, %v", out, err)
	}
	if _, err := h.Run(t.Context(), "none"); !errors.Is(err, driver.ErrNoProgram) {
		t.Errorf("none: %v", err)
	}
	if _, err := h.Run(t.Context(), "fails"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("fails: %v", err)
	}
	if _, err := h.Run(t.Context(), "floods"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("floods: %v", err)
	}
	pid := 0
	for limit := time.Second; pid == 0; limit *= 2 { // a busy machine takes longer to start the child
		if limit > wait.Timeout {
			t.Fatal("the program starts no child")
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if _, err := h.Run(ctx, "hangs"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("hangs: %v", err)
		}
		cancel()
		raw, _ := os.ReadFile(left)
		_, _ = fmt.Sscan(string(raw), &pid)
	}
	wait.Until(t, "the program's child ends", func() bool {
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(state), ") Z ") // a zombie has ended
	})
}

func TestAddressesAreTheKernels(t *testing.T) {
	for from, want := range map[string]string{
		"0000:3b:00.0": "0000:3b:00.0", "00000000:3B:00.0": "0000:3b:00.0", "3B:00.0": "0000:3b:00.0", "0001:3b:00.0": "0001:3b:00.0", "x": "x",
	} {
		if got := driver.Address(from); got != want {
			t.Errorf("%s is %s, want %s", from, got, want)
		}
	}
}

func TestSensor(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		kind  string
		want  string
	}{
		"limit":        {map[string]string{"hwmon0/temp1_input": "45500", "hwmon0/temp1_max": "75000"}, "temp", "45.5 of 75"},
		"critical":     {map[string]string{"hwmon0/temp1_input": "1000", "hwmon0/temp1_max": "75000", "hwmon0/temp1_crit": "90000"}, "temp", "1 of 90"},
		"average":      {map[string]string{"hwmon3/power1_average": "81250000"}, "power", "81.25 of 0"},
		"another chip": {map[string]string{"hwmon0/name": "fan", "hwmon1/power1_input": "2000000"}, "power", "2 of 0"},
		"garbage":      {map[string]string{"hwmon0/temp1_input": "hot"}, "temp", "none"},
		"none":         {map[string]string{"hwmon0/name": "fan"}, "temp", "none"},
	} {
		files := map[string]string{}
		for file, text := range row.files {
			files["hwmon/"+file] = text
		}
		got := "none"
		if value, limit, err := driver.Sensor(tree(t, files), row.kind); err == nil {
			got = fmt.Sprint(value, " of ", limit)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

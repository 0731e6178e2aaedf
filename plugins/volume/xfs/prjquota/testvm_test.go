package prjquota

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// TestVMCalls checks that written values are read back, by file and, as before Linux 5.14, by
// device.
func TestVMCalls(t *testing.T) {
	m := vmtest.Machine{Machine: testvm.Machine{Disks: []testvm.Disk{testvm.XFS("xfs"), testvm.Ext4("ext4")}}}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		for _, disk := range []string{"xfs", "ext4"} {
			t.Run(disk, func(t *testing.T) { calls(t, filepath.Join(p.Mount(disk), "d")) })
		}
	})
}

func calls(t *testing.T, at string) {
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if s, err := StateOf(d); err != nil || s != (State{Accounted: true, Enforced: true}) {
		t.Errorf("state %+v, %v", s, err)
	}
	const id = 4_000_000_000 // uses all 32 bits
	if q, err := Get(d, id); err != nil || q != (Quota{}) {
		t.Errorf("before use %+v, %v", q, err)
	}
	if err := Assign(d, id); err != nil {
		t.Fatal(err)
	}
	if got, inherited, err := Of(d); err != nil || got != id || !inherited {
		t.Errorf("project %d, inherited %v, %v", got, inherited, err)
	}
	if err := os.WriteFile(filepath.Join(at, "file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Limit(d, id, 16<<30, 100); err != nil {
		t.Fatal(err)
	}
	q, err := Get(d, id)
	if err != nil || q.MaxBytes != 16<<30 || q.MaxInodes != 100 || q.Inodes != 2 {
		t.Errorf("quota %+v, %v", q, err)
	}
	var old block
	if err := callDevice(d, getQuota, id, unsafe.Pointer(&old)); err != nil || old.hardInodes != 100 || old.inodes != 2 || old.hardBlocks != 16<<20 {
		t.Errorf("by device %+v, %v", old, err)
	}
	if err := Limit(d, id, 0, 0); err != nil {
		t.Fatal(err)
	}
	if q, err := Get(d, id); err != nil || q.MaxBytes != 0 || q.MaxInodes != 0 || q.Inodes != 2 {
		t.Errorf("without limits %+v, %v", q, err)
	}
	if err := Assign(d, 0); err != nil {
		t.Fatal(err)
	}
	if got, inherited, err := Of(d); err != nil || got != 0 || inherited {
		t.Errorf("project %d, inherited %v, %v", got, inherited, err)
	}
}

// TestNoQuotas checks that a file system without project quotas is not an error.
func TestNoQuotas(t *testing.T) {
	d, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if s, err := StateOf(d); err != nil || s != (State{}) {
		t.Errorf("state %+v, %v", s, err)
	}
}

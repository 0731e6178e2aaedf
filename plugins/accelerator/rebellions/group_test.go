package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/fixture/fixturetest"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// groups returns the members of all groups except the default one.
func groups(t *testing.T, m *machine) string {
	t.Helper()
	r, err := m.groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, id := range []string{"1", "2", "3", "4"} {
		if members := r.members(id); len(members) > 0 {
			for i, bus := range members {
				members[i] = bus[5:7]
			}
			out = append(out, id+":"+strings.Join(members, "+"))
		}
	}
	return strings.Join(out, " ")
}

func nodes(r *pb.PrepareResponse) string {
	var out []string
	for _, n := range r.GetEdits().GetDeviceNodes() {
		out = append(out, filepath.Base(n.GetHostPath())+">"+filepath.Base(n.GetPath()))
	}
	return strings.Join(out, " ")
}

func check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func edit(t *testing.T, m *machine, id string, devices ...int) *pb.PrepareResponse {
	t.Helper()
	r, err := m.Edit(t.Context(), request(t, bench.Scan(t, m), id, devices...))
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return r
}

func TestAllocationsHaveGroupsOfTheirOwn(t *testing.T) {
	tree, state := fixturetest.Start(t, "atom-4"), t.TempDir()
	m := open(t, tree, state, "")
	check(t, "one", nodes(edit(t, m, "one", 0)), "rbln0>rbln0 rsd1>rsd0")
	check(t, "groups", groups(t, m), "1:1b")
	// The first NPU now has the last index; devices 2 and 3 must still be 3d and b1.
	two := edit(t, m, "two", 3, 2)
	check(t, "two", nodes(two), "rbln2>rbln0 rbln3>rbln1 rsd2>rsd0")
	check(t, "groups", groups(t, m), "1:1b 2:3d+b1")
	if e := two.GetEdits(); len(e.GetLibraryDirs()) != 1 || len(e.GetMounts()) != 3 || len(e.GetCapabilities()) > 0 {
		t.Errorf("edits: %v", e)
	}
	// Another process of the plugin returns the same response.
	if again := edit(t, open(t, tree, state, ""), "two", 2, 3); !proto.Equal(two, again) {
		t.Errorf("again:\n%v\n%v", two, again)
	}
	if err := m.Undo(t.Context(), "one", nil); err != nil {
		t.Fatal(err)
	}
	check(t, "groups after Undo", groups(t, m), "2:3d+b1")
	for range 2 {
		if err := m.Undo(t.Context(), "two", two.GetState()); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "groups at the end", groups(t, m), "")
	if left, _ := os.ReadDir(state); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGroupOfAnotherAllocationIsNotTouched(t *testing.T) {
	m := open(t, fixturetest.Start(t, "atom-4"), t.TempDir(), "")
	edit(t, m, "first", 0, 1)
	_, err := m.Edit(t.Context(), request(t, bench.Scan(t, m), "second", 1, 2))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "of allocation first") {
		t.Errorf("%v", err)
	}
	if err := m.Undo(t.Context(), "second", nil); err != nil {
		t.Error(err)
	}
	// The state of an earlier allocation refers to a group that now belongs to another one.
	if err := m.Undo(t.Context(), "old", []byte(`{"group":"1","npus":["0000:1b:00.0","0000:1c:00.0"]}`)); err != nil {
		t.Error(err)
	}
	check(t, "groups", groups(t, m), "1:1b+1c")
}

func TestGroupsThatOthersMade(t *testing.T) {
	tree := fixturetest.Start(t, "atom-4")
	m := open(t, tree, t.TempDir(), "")
	make := func(args ...string) {
		t.Helper()
		if err := m.regroup(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	make("-c", "3", "-a", "0,1")
	_, err := m.Edit(t.Context(), request(t, bench.Scan(t, m), "half", 1))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "RSD group 3, which Berth did not create") {
		t.Errorf("half of it: %v", err)
	}
	edit(t, m, "all", 0, 1, 2)
	check(t, "all of it", groups(t, m), "1:1b+1c+3d")
	make("-c", "2", "-a", "0") // b1, which a process uses
	if r, err := m.groups(t.Context()); err != nil || free(r, nil) != "3" {
		t.Errorf("a number that somebody's group has is free: %v", err)
	}
	if _, err = m.Edit(t.Context(), request(t, bench.Scan(t, m), "busy", 3)); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "a program runs") {
		t.Errorf("busy: %v", err)
	}
	check(t, "at the end", groups(t, m), "1:1b+1c+3d 2:b1")
}

func TestSweep(t *testing.T) {
	tree, state := fixturetest.Start(t, "atom-4"), t.TempDir()
	m := open(t, tree, state, "")
	kept := edit(t, m, "kept", 0)
	edit(t, m, "leaked", 1, 2)
	live := []*pb.LiveAllocation{{AllocationId: "kept", State: kept.GetState()}}
	leaks, err := m.Sweep(t.Context(), live)
	if err != nil || !slices.Equal(leaks, []string{"RSD group 2 of allocation leaked"}) {
		t.Errorf("%q, %v", leaks, err)
	}
	check(t, "groups", groups(t, m), "1:1b")
	// The state directory was lost: the agent's copy of the state replaces it.
	if err := os.Remove(filepath.Join(state, "groups.json")); err != nil {
		t.Fatal(err)
	}
	if leaks, err := m.Sweep(t.Context(), live); err != nil || len(leaks) > 0 {
		t.Errorf("%q, %v", leaks, err)
	}
	if _, err := m.Edit(t.Context(), request(t, bench.Scan(t, m), "other", 0)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the group of a live allocation was taken: %v", err)
	}
	if leaks, err := m.Sweep(t.Context(), nil); err != nil || len(leaks) != 1 {
		t.Errorf("%q, %v", leaks, err)
	}
	check(t, "groups at the end", groups(t, m), "")
}

// TestNumberOfAnothersGroup checks that a foreign group is left alone if Berth's group was
// destroyed externally and its number was reused for other NPUs.
func TestNumberOfAnothersGroup(t *testing.T) {
	m := open(t, fixturetest.Start(t, "atom-4"), t.TempDir(), "")
	edit(t, m, "mine", 0)
	for _, args := range [][]string{{"-d", "1"}, {"-c", "1", "-a", "1,2"}} {
		if err := m.regroup(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	before := groups(t, m)
	if err := m.Undo(t.Context(), "mine", nil); err != nil {
		t.Fatal(err)
	}
	check(t, "groups", groups(t, m), before)
}

func TestGroupingFails(t *testing.T) {
	tree := fixturetest.Start(t, "atom-4")
	m := open(t, tree, t.TempDir(), "")
	r := request(t, bench.Scan(t, m), "a", 0)
	if err := tree.Remove("dev/rsd1"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Edit(t.Context(), r); err == nil || !strings.Contains(err.Error(), "/dev/rsd1") {
		t.Errorf("%v", err)
	}
	if err := m.Undo(t.Context(), "a", nil); err != nil { // as the package driver does
		t.Fatal(err)
	}
	check(t, "groups", groups(t, m), "")
	if err := tree.Fail("rbln-smi", 1, "no such device"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Edit(t.Context(), r); err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("%v", err)
	}
	if err := m.Undo(t.Context(), "never seen", nil); err != nil {
		t.Errorf("nothing was to undo: %v", err)
	}
}

func TestGroupIsFreshWithoutState(t *testing.T) {
	m := open(t, fixturetest.Start(t, "atom-4"), "", "")
	if _, err := m.Edit(t.Context(), request(t, bench.Scan(t, m), "a", 0)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("%v", err)
	}
	single := open(t, fixturetest.Start(t, "atom-4"), "", `{"group_single": false, "libraries": false}`)
	r := edit(t, single, "a", 1)
	check(t, "in everybody's", nodes(r), "rbln1>rbln0 rsd0>rsd0")
	if len(r.GetEdits().GetMounts()) > 0 || len(r.GetState()) > 0 {
		t.Errorf("%v", r)
	}
}

func TestCardIsAGroup(t *testing.T) {
	m := open(t, fixturetest.Start(t, "atom-max-2x"), t.TempDir(), "")
	check(t, "the driver's", groups(t, m), "1:31+32+33+34")
	check(t, "second card", nodes(edit(t, m, "b", 1)), "rbln12>rbln0 rbln13>rbln1 rbln14>rbln2 rbln15>rbln3 rsd1>rsd0")
	check(t, "first card", nodes(edit(t, m, "a", 0)), "rbln8>rbln0 rbln9>rbln1 rbln10>rbln2 rbln11>rbln3 rsd2>rsd0")
	check(t, "groups", groups(t, m), "1:31+32+33+34 2:21+22+23+24")
}

func TestAnotherProgramHoldsTheLock(t *testing.T) {
	tree := fixturetest.Start(t, "atom-4")
	m := open(t, tree, t.TempDir(), "")
	r := request(t, bench.Scan(t, m), "a", 0)
	path := filepath.Join(tree.Roots().Driver, "var/run/rbln-device-plugin.lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := m.Edit(ctx, r); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	check(t, "groups", groups(t, m), "")
	f.Close()
	if _, err := m.Edit(t.Context(), r); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

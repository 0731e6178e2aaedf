package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	testvm "github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// taskKey is an environment variable. With it, this command runs inside user-mode Linux, checks one
// plugin and prints each result as a line of JSON.
const taskKey = "BERTH_CONFORMANCE_TASK"

type task struct {
	Binary, FS string
	Only       []string
}

// booted checks a plugin inside user-mode Linux, on a disk of its own.
func booted(fs string) func(context.Context, string, []string, func(suite.Result)) error {
	return func(ctx context.Context, binary string, only []string, report func(suite.Result)) error {
		share, err := os.MkdirTemp("", "testvm")
		if err != nil {
			return err
		}
		defer os.RemoveAll(share)
		self, err := os.Executable()
		if err != nil {
			return err
		}
		raw, err := json.Marshal(task{binary, fs, only})
		if err != nil {
			return err
		}
		out, err := testvm.Boot(ctx, machine(fs), share, []string{self}, []string{taskKey + "=" + string(raw)})
		for lines := json.NewDecoder(bytes.NewReader(out)); err == nil && lines.More(); {
			var r suite.Result
			if err = lines.Decode(&r); err == nil {
				report(r)
			}
		}
		return err
	}
}

func machine(fs string) testvm.Machine {
	if fs == "ext4" {
		return testvm.Machine{Disks: []testvm.Disk{testvm.Ext4("disk")}}
	}
	m := testvm.Machine{Disks: []testvm.Disk{testvm.XFS("disk")}}
	if fs == "smb" {
		m.Modules, m.Tools = testvm.SMBModules, testvm.SMBTools
	}
	if fs == "nfs" {
		m.Modules = testvm.NFSModules
		m.Disks[0].Options += ",allocsize=64k" // the default reserves too much space for a growing file
	}
	return m
}

// boot returns at once outside of the VM. Inside, this command first runs as the init process and
// then as the process that checks.
func boot() {
	testvm.Init()
	raw := os.Getenv(taskKey)
	if raw == "" {
		return
	}
	if err := inside(raw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// inside runs the checks inside the VM.
func inside(raw string) error {
	var t task
	if err := json.Unmarshal([]byte(raw), &t); err != nil {
		return err
	}
	p, err := product(t.FS)
	if err != nil {
		return err
	}
	p.Path = t.Binary
	out := json.NewEncoder(os.Stdout)
	var failed error
	err = volumetest.Run(context.Background(), p, t.Only, func(r suite.Result) {
		if err := out.Encode(r); err != nil {
			failed = fmt.Errorf("report: %w", err)
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// product mounts, inside the VM, the file system that a plugin is for.
func product(fs string) (p volumetest.Plugin, err error) {
	p.Mount = testvm.Mounted("disk")
	switch fs {
	case "nfs":
		if err = testvm.ServeNFS(p.Mount); err == nil {
			p.Mount, err = testvm.MountNFS("nfs", "vers=4.2")
		}
		p.Options = `{"usage_max_age_s": 0}`
	case "smb":
		if err = testvm.ServeSMB(p.Mount, testvm.SMBKeeps); err == nil {
			p.Mount, err = testvm.MountSMB("smb", testvm.SMBKept)
		}
		p.Options, p.Environment.Lengths = `{"usage_max_age_s": 0}`, true
	}
	return p, err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	kernel "github.com/berthhq/berth/internal/lane"
	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// taskKey is in the environment of this command inside user-mode Linux, where it
// checks one plugin and prints each result as a line of JSON.
const taskKey = "BERTH_CONFORMANCE_TASK"

type task struct {
	Binary, FS string
	Only       []string
}

// booted checks a plugin inside user-mode Linux, on a disk of its own.
func booted(fs string) func(context.Context, string, []string, func(suite.Result)) error {
	return func(ctx context.Context, binary string, only []string, report func(suite.Result)) error {
		share, err := os.MkdirTemp("", "lane")
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
		out, err := kernel.Boot(ctx, machine(fs), share, []string{self}, []string{taskKey + "=" + string(raw)})
		for lines := json.NewDecoder(bytes.NewReader(out)); err == nil && lines.More(); {
			var r suite.Result
			if err = lines.Decode(&r); err == nil {
				report(r)
			}
		}
		return err
	}
}

func machine(fs string) kernel.Machine {
	if fs == "ext4" {
		return kernel.Machine{Disks: []kernel.Disk{kernel.Ext4("disk")}}
	}
	m := kernel.Machine{Disks: []kernel.Disk{kernel.XFS("disk")}}
	if fs == "smb" {
		m.Modules, m.Tools = kernel.SMBModules, kernel.SMBTools
	}
	if fs == "nfs" {
		m.Modules = kernel.NFSModules
		m.Disks[0].Options += ",allocsize=64k" // or it sets aside as much again for a file that grows
	}
	return m
}

// boot returns at once but in the machine: there this command is first the one that
// sets it up, and then the one that checks.
func boot() {
	kernel.Init()
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

// inside is this command in the machine.
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

// product mounts, in the machine, what a plugin is for.
func product(fs string) (p volumetest.Plugin, err error) {
	p.Mount = kernel.Mounted("disk")
	switch fs {
	case "nfs":
		if err = kernel.ServeNFS(p.Mount); err == nil {
			p.Mount, err = kernel.MountNFS("nfs", "vers=4.2")
		}
		p.Options = `{"usage_max_age_s": 0}`
	case "smb":
		if err = kernel.ServeSMB(p.Mount, kernel.SMBKeeps); err == nil {
			p.Mount, err = kernel.MountSMB("smb", kernel.SMBKept)
		}
		p.Options, p.Lane.Lengths = `{"usage_max_age_s": 0}`, true
	}
	return p, err
}

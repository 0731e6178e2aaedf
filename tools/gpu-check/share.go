package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// share runs a command with the plugin's preparations for a share of a GPU: its environment and its
// /dev/shm. Mounts at other paths are not created; the environment has the paths of their sources
// instead.
func share(ctx context.Context, c *accelerator.Client, dir, gpu, amount string, command []string) (err error) {
	work, err := os.MkdirTemp(dir, "work")
	if err != nil {
		return err
	}
	const id = "check"
	answer, err := c.Prepare(ctx, &pb.PrepareRequest{
		AllocationId: id, KernelId: id, SessionId: id, TrustDomain: id, WorkDir: work,
		Allocations: []*pb.Allocation{{Slot: "cuda.shares", DeviceId: gpu, Amount: amount}},
	})
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() {
		if _, e := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: id, State: answer.GetState()}); e != nil {
			err = errors.Join(err, fmt.Errorf("unprepare: %w", e))
		}
	}()

	env := answer.GetEdits().GetEnv()
	shm := ""
	for _, m := range answer.GetEdits().GetMounts() {
		if m.GetTarget() == "/dev/shm" {
			shm = m.GetSource()
		}
		for name, value := range env {
			if value == m.GetTarget() {
				env[name] = m.GetSource()
			}
		}
	}
	if shm == "" {
		return errors.New("the plugin mounts no /dev/shm")
	}
	args := append([]string{"--mount", "--propagation", "private", "sh", "-c", `mount --bind "$0" /dev/shm && exec "$@"`, shm}, command...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

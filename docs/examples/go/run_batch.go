// Command run_batch creates a batch session, waits until it ends and prints its log.
//
//	BERTH_URL=https://berth.example.org BERTH_TOKEN=... go run ./docs/examples/go IMAGE COMMAND...
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"

	"github.com/berthhq/berth/client"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, image string, command []string) error {
	c, err := client.New(os.Getenv("BERTH_URL"), os.Getenv("BERTH_TOKEN"), "run_batch")
	if err != nil {
		return err
	}
	session, err := c.CreateSession(ctx, client.CreateSessionInput{
		Image: image, Command: command,
		Slots:          client.Slots{"cpu": "0.1", "mem": "64m"},
		IdempotencyKey: rand.Text(), // a repeated request creates one session
	})
	if err != nil {
		return err
	}
	var last client.SessionState
	err = c.WatchSession(ctx, session.ID, nil, func(s client.SessionState) bool {
		last = s
		return !s.Ended()
	})
	if err != nil {
		return err
	}
	if err := c.Log(ctx, session.ID, os.Stdout); err != nil {
		return err
	}
	if last.ExitCode == nil || *last.ExitCode != 0 {
		return fmt.Errorf("session %s %s: %s", last.Name, last.Status, last.StatusMessage)
	}
	return nil
}

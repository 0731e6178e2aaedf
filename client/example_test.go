package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/berthhq/berth/client"
)

// List the running sessions that the owner of the token can see. A program that creates a
// session and waits for it is in docs/examples/go.
func Example() {
	c, err := client.New(os.Getenv("BERTH_URL"), os.Getenv("BERTH_TOKEN"), "example")
	if err != nil {
		log.Fatal(err)
	}
	sessions, err := c.Sessions(context.Background(), client.SessionFilter{Statuses: []client.Enum{"RUNNING"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sessions {
		fmt.Println(s.Name, s.Owner.Title(), s.Slots["cpu"])
	}
}

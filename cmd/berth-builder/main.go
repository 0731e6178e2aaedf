// Command berth-builder builds one image. The agent starts it beside the container of a build; people
// never call it themselves. It is a program of its own so that an error in it, or memory that it needs,
// affects one build alone.
package main

import (
	"os"

	"github.com/berthhq/berth/agent/build/builder"
)

func main() {
	os.Exit(builder.Main(os.Stdin, os.Stdout))
}

// Command sapeon is the accelerator plugin for SAPEON's X220 and X330. Their driver is not
// documented publicly, so the plugin uses a description (sapeon.yaml) to which the operator adds
// the device files and the program.
package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/declarative"
)

//go:embed sapeon.yaml
var description []byte

func main() {
	spec, err := declarative.Parse(description)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	driver.Serve(declarative.New(spec))
}

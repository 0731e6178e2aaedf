// Command sapeon is the accelerator plugin for SAPEON's X220 and X330. Nothing of
// their driver is public, so it is a description (sapeon.yaml) whose device files
// and program the operator names.
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

// Command declarative is the accelerator plugin for vendors that have none: it
// reads a description of their products from the YAML file beside it that has its
// name. A link of another name is another vendor:
//
//	ln -s declarative acme; edit acme.yaml
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/driver/declarative"
)

func main() {
	spec, err := read(os.Args[0] + ".yaml")
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s.yaml: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	driver.Serve(declarative.New(spec))
}

// read returns a description of nothing where there is no file.
func read(path string) (*declarative.Spec, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte("key: declarative\nvendor: described\nproducts: [{slot: declarative.device, name: device}]\n")
	} else if err != nil {
		return nil, err
	}
	return declarative.Parse(text)
}

// Command declarative is an accelerator plugin for vendors without a plugin. It reads a description
// of their products from a YAML file with its own name beside it. A symbolic link with another name
// serves another vendor:
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

// read parses the description, or returns one without hardware if the file does not exist.
func read(path string) (*declarative.Spec, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte("key: declarative\nvendor: described\nproducts: [{slot: declarative.device, name: device}]\n")
	} else if err != nil {
		return nil, err
	}
	return declarative.Parse(text)
}

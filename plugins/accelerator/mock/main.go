// Command mock is an accelerator plugin for hardware that does not exist. Its
// devices, measurements and failures follow from its configuration and from
// files that a test drops into its state directory; the contract is the real
// one, and so is the process.
package main

import (
	"os"

	"github.com/berthhq/berth/plugins/accelerator"
)

func main() {
	m := &mock{faults: faults{dir: os.Getenv("BERTH_MOCK_FAULTS")}}
	accelerator.Serve(m)
}

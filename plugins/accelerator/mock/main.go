// Command mock is an accelerator plugin without hardware. Its configuration and files that a test
// creates in its state directory determine its devices, metrics and failures. The contract and the
// process are real.
package main

import (
	"os"

	"github.com/berthhq/berth/plugins/accelerator"
)

func main() {
	m := &mock{faults: faults{dir: os.Getenv("BERTH_MOCK_FAULTS")}}
	accelerator.Serve(m)
}

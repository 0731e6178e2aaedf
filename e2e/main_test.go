package e2e

import (
	"os"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

var platform *cluster.Platform

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, cluster.Options{Accelerators: 2, AppPaths: true}, &platform))
}

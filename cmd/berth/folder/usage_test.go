package folder

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestFolderUsage(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Vfolders": oneFolder,
		"QuotaScopes": `{"quotaScopes":{"edges":[{"node":{"id":"s-1","usedBytes":2048,"effectiveLimitBytes":4096,"usedInodes":13,"limitInodes":100,"enforcement":"HARD",
			"volume":{"id":"v-1","name":"fast"},"holderProject":{"id":"p-1","name":"thesis"}}}],"pageInfo":{}}}`,
	})
	r := f.Run("folder", "usage")
	for _, want := range []string{"project thesis", "all", "data", "2 KiB", "4 KiB", "100", "hard", "12"} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q in\n%s", want, r.Out)
		}
	}
	if !strings.Contains(said["QuotaScopes"], `"mine":true`) {
		t.Errorf("asked for %s", said["QuotaScopes"])
	}
}

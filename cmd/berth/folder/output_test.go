package folder

import (
	"testing"
)

func TestFolderOutput(t *testing.T) {
	f := newServer(t)
	f.Data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"01908a5e-0000-7000-8000-0000000000f1","name":"자료","status":"READY","createdAt":"2026-03-01T12:00:00Z","deletedAt":null,
	  "owner":{"id":"u","email":"mina@example.org"},"project":null,"quotaScope":{"limitBytes":null,"usedBytes":1,"volume":{"id":"v","name":"main"}},"mountedBy":[{"id":"s","name":"train"}]}}],
	  "pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Golden(map[string][]string{
		"folder-ls": {"folder", "ls"},
	})
}

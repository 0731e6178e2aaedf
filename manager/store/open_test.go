package store_test

import (
	"context"
	"testing"

	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

// TestCommitsAreNotCutOff cancels the caller's context right before the commit.
func TestCommitsAreNotCutOff(t *testing.T) {
	client, _ := identitytest.Store(t)
	ctx, leave := context.WithCancel(viewer.SystemContext(t.Context()))
	tx, err := client.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tx.Domain.Create().SetName("kept").ExecX(ctx)
	leave()
	if err := tx.Commit(); err != nil {
		t.Errorf("commit: %v", err)
	}
	if n := client.Domain.Query().CountX(viewer.SystemContext(t.Context())); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

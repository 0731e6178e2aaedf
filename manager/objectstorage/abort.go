package objectstorage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/problem"
	tasks "github.com/berthhq/berth/manager/task"
)

// aborting is the input of a task that aborts multipart uploads.
type aborting struct {
	upload
	Storage, Task uuid.UUID
}

// Undo starts a task that aborts the multipart uploads of a cancelled export.
func (e exporter) Undo(ctx context.Context, tx *ent.Tx, t *ent.Task) error {
	var in moving
	var st state
	if err := json.Unmarshal(t.Input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	if len(t.State) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.State, &st); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if st.Upload == nil {
		return nil
	}
	want := tasks.Wanted{
		Kind: abortKind, Title: fmt.Sprintf("Take back the parts of %.80s, whose export was cancelled", st.Upload.Path),
		Input: aborting{st.Upload.upload, in.Storage, t.ID}, Subject: in.Folder,
	}
	if t.DomainID != nil {
		want.Domain = *t.DomainID
	}
	_, err := e.tasks.Enqueue(ctx, tx, want)
	return err
}

// aborter runs the tasks that abort multipart uploads.
type aborter struct{ *Service }

func (a aborter) Run(ctx context.Context, _ *tasks.Progress, input []byte) error {
	var in aborting
	if err := json.Unmarshal(input, &in); err != nil {
		return fmt.Errorf("read input: %w", err)
	}
	if a.tasks.Runs(in.Task) { // its last parts may still arrive
		return tasks.Wait("the export to end")
	}
	row, err := a.client.ObjectStorage.Get(ctx, in.Storage)
	if ent.IsNotFound(err) {
		return problem.Precondition("the object storage was deleted")
	}
	if err != nil {
		return fmt.Errorf("read object storage: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b, err := a.open(ctx, row, inTask)
	if err != nil {
		return err
	}
	return b.abort(ctx, in.upload)
}

package objectstorage

import "context"

// walk processes the items of a task, page by page, in an order in which it can continue after
// any item.
type walk[T any] struct {
	*run
	list func(ctx context.Context, after string, most int) (page []T, more bool, err error)
	// at returns the name and the size of an item.
	at func(T) (name string, bytes int64)
	// move processes the items of a page that are not done yet.
	move func(ctx context.Context, page []T) error
	verb string // past tense of the operation, such as imported
}

// Pages are small when each item is recorded, and large when items are only counted.
const (
	pageSize  = 200
	countSize = 1000
)

func (w walk[T]) all(ctx context.Context) error {
	if err := w.count(ctx); err != nil {
		return err
	}
	for more := true; more; {
		page, next, err := w.list(ctx, w.st.After, pageSize)
		if err != nil {
			return err
		}
		if err := w.move(ctx, page); err != nil {
			return err
		}
		if len(page) > 0 {
			last, _ := w.at(page[len(page)-1])
			w.st.passed(last)
		}
		if more = next; more {
			if err := w.save(ctx, true, 0); err != nil {
				return err
			}
		}
	}
	failed := w.st.outcome(w.verb)
	if err := w.save(ctx, true, 0); err != nil {
		return err
	}
	return failed
}

// count counts all items, so that users can see the progress.
func (w walk[T]) count(ctx context.Context) error {
	for !w.st.Counted {
		page, more, err := w.list(ctx, w.st.Count, countSize)
		if err != nil {
			return err
		}
		for _, item := range page {
			name, bytes := w.at(item)
			w.st.FilesTotal++
			w.st.BytesTotal += bytes
			w.st.Count = name
		}
		w.st.Counted = !more
		if err := w.save(ctx, !more, 0); err != nil {
			return err
		}
	}
	return nil
}

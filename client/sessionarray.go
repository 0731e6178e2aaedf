package client

import "context"

// SessionArrayFilter selects arrays of sessions; zero values select all.
type SessionArrayFilter struct {
	ID, Name string
	Owner    string // id
	Tag      string
	Live     bool // only arrays with a member that has not ended
	Limit    int
}

// SessionArrays lists the arrays that the viewer can see, newest first.
func (c *Client) SessionArrays(ctx context.Context, f SessionArrayFilter) ([]SessionArray, error) {
	where := nameIs(f.Name)
	put(where, "id", f.ID)
	put(where, "ownerID", f.Owner)
	put(where, "tag", f.Tag)
	if f.Live {
		where["live"] = true
	}
	return collect(f.Limit, func(first *int, after string) (*querySessionArraysSessionArraysSessionArrayConnection, error) {
		out, err := querySessionArrays(ctx, c, first, after, where)
		return &out.SessionArrays, err
	})
}

// CreateSessionArray creates all members of an array.
func (c *Client) CreateSessionArray(ctx context.Context, in CreateSessionArrayInput) (*SessionArray, error) {
	out, err := createSessionArray(ctx, c, in)
	return &out.Payload.Array, err
}

// CancelSessionArray ends all members that have not ended, and returns their number. With force,
// there is no grace period.
func (c *Client) CancelSessionArray(ctx context.Context, id string, force bool) (int, error) {
	out, err := cancelSessionArray(ctx, c, CancelSessionArrayInput{ID: id, Force: force})
	return out.Payload.Sessions, err
}

// RetrySessionArray starts the members that ended without success again, and returns their number.
func (c *Client) RetrySessionArray(ctx context.Context, id string) (int, error) {
	out, err := retrySessionArray(ctx, c, RetrySessionArrayInput{ID: id})
	return out.Payload.Sessions, err
}

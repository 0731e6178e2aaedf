package client

import "context"

// WaitReport returns percentiles of the time that starts of sessions took.
func (c *Client) WaitReport(ctx context.Context, in WaitReportInput) ([]WaitRow, error) {
	if in.By == nil {
		in.By = []Enum{}
	}
	out, err := queryWaitReport(ctx, c, in)
	return out.WaitReport, err
}

// CapacityReport divides capacity times time. The result says since when the record exists.
func (c *Client) CapacityReport(ctx context.Context, in CapacityReportInput) (*Capacity, error) {
	if in.By == nil {
		in.By = []Enum{}
	}
	out, err := queryCapacityReport(ctx, c, in)
	return &out.CapacityReport, err
}

// Waste returns sessions, users or machines that use less than they have.
func (c *Client) Waste(ctx context.Context, in WasteInput) ([]WasteRow, error) {
	out, err := queryWaste(ctx, c, in)
	return out.Waste, err
}

// SizeAdvice returns the size that a session of the user with the image would have needed; nil without one. Sessions with the name go first.
func (c *Client) SizeAdvice(ctx context.Context, image, name string) (*SizeAdvice, error) {
	out, err := querySizeAdvice(ctx, c, image, name)
	return out.SizeAdvice, err
}

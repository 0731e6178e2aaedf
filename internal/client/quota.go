package client

import (
	"context"
	"time"
)

// QuotaScope is what all folders of a user or project on a volume share.
type QuotaScope struct {
	ID                  string     `json:"id"`
	Kind                string     `json:"kind"`
	LimitBytes          *int64     `json:"limitBytes"`
	EffectiveLimitBytes *int64     `json:"effectiveLimitBytes"`
	UsedBytes           *int64     `json:"usedBytes"`
	LimitInodes         *int64     `json:"limitInodes"`
	UsedInodes          *int64     `json:"usedInodes"`
	Enforcement         string     `json:"enforcement"`
	MeasuredAt          *time.Time `json:"measuredAt"`
	Volume              Ref        `json:"volume"`
	HolderUser          *UserRef   `json:"holderUser"`
	HolderProject       *Ref       `json:"holderProject"`
}

const quotaScopeFields = `fragment quotaScopeFields on QuotaScope {
  id kind limitBytes effectiveLimitBytes usedBytes limitInodes usedInodes enforcement measuredAt
  volume { id name } holderUser { id email } holderProject { id name }
}`

var listQuotaScopes = define[struct {
	QuotaScopes connection[QuotaScope] `json:"quotaScopes"`
}](`query QuotaScopes($first: Int, $after: Cursor, $mine: Boolean) {
  quotaScopes(first: $first, after: $after, orderBy: [{ field: CREATED_AT }], mine: $mine) {
    edges { node { ...quotaScopeFields } } pageInfo { hasNextPage endCursor }
  }
}`, quotaScopeFields)

// QuotaScopes lists the scopes in sight, or those of oneself and one's projects alone.
func (c *Client) QuotaScopes(ctx context.Context, mine bool) ([]QuotaScope, error) {
	return collect(0, vars{"mine": mine}, func(v vars) (connection[QuotaScope], error) {
		out, err := listQuotaScopes.run(ctx, c, v)
		return out.QuotaScopes, err
	})
}

// QuotaScopeInput gives a user or project limits on a volume; nil is the policies'.
type QuotaScopeInput struct {
	Volume      string `json:"volume"`
	User        string `json:"user,omitempty"`
	Project     string `json:"project,omitempty"`
	LimitBytes  *int64 `json:"limitBytes"`
	LimitInodes *int64 `json:"limitInodes"`
}

var setQuotaScope = define[payload[struct {
	QuotaScope QuotaScope `json:"quotaScope"`
}]](`mutation SetQuotaScope($input: SetQuotaScopeInput!) {
  payload: setQuotaScope(input: $input) { quotaScope { ...quotaScopeFields } }
}`, quotaScopeFields)

// SetQuotaScope sets the limits of a scope, which it makes when there is none.
func (c *Client) SetQuotaScope(ctx context.Context, in QuotaScopeInput) (*QuotaScope, error) {
	out, err := change(ctx, c, setQuotaScope, in)
	return &out.QuotaScope, err
}

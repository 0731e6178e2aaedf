package client

import (
	"context"
	"time"
)

// IdleChecker is a rule by which sessions that are of no use any more are ended.
type IdleChecker struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	Kind         string          `json:"kind"` // lifetime, network, utilization or memory
	Enabled      bool            `json:"enabled"`
	Timeout      int             `json:"timeout"` // seconds, as are the three below
	Grace        int             `json:"grace"`
	NewUserGrace int             `json:"newUserGrace"`
	Warning      int             `json:"warning"`
	Match        string          `json:"match"` // all or any of the thresholds
	Thresholds   []IdleThreshold `json:"thresholds"`
	SessionTypes []string        `json:"sessionTypes"`
	Bindings     []IdleBinding   `json:"bindings"`
	CreatedAt    time.Time       `json:"createdAt"`
}

// IdleThreshold is the most use, in percent, at which a kind of slot counts as
// unused.
type IdleThreshold struct {
	Slot    string  `json:"slot"`
	Percent float64 `json:"percent"`
}

// IdleBinding is one place where a checker is in force; what is out of sight is
// nil.
type IdleBinding struct {
	ID            string `json:"id"`
	Domain        *Ref   `json:"domain"`
	Project       *Ref   `json:"project"`
	ResourceGroup *Ref   `json:"resourceGroup"`
	Everywhere    bool   `json:"everywhere"`
}

// SessionIdle is what would end a session next for being of no use.
type SessionIdle struct {
	Checker  string     `json:"checker"`
	Kind     string     `json:"kind"`
	EndsAt   time.Time  `json:"endsAt"`
	Reason   string     `json:"reason"`
	WarnedAt *time.Time `json:"warnedAt"`
}

const idleCheckerFields = `fragment idleCheckerFields on IdleChecker {
  id name description kind enabled timeout grace newUserGrace warning match thresholds { slot percent } sessionTypes
  bindings { id domain { id name } project { id name } resourceGroup { id name } everywhere } createdAt
}`

var listIdleCheckers = define[struct {
	IdleCheckers connection[IdleChecker] `json:"idleCheckers"`
}](`query IdleCheckers($first: Int, $after: Cursor, $where: IdleCheckerWhereInput) {
  idleCheckers(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...idleCheckerFields } } pageInfo { hasNextPage endCursor }
  }
}`, idleCheckerFields)

// IdleCheckers lists idle checkers in sight; name "" means all.
func (c *Client) IdleCheckers(ctx context.Context, name string) ([]IdleChecker, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[IdleChecker], error) {
		out, err := listIdleCheckers.run(ctx, c, v)
		return out.IdleCheckers, err
	})
}

// CreateIdleCheckerInput is a new checker; what is nil takes its default.
type CreateIdleCheckerInput struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	IdleTerms
}

// UpdateIdleCheckerInput changes what is not nil.
type UpdateIdleCheckerInput struct {
	ID   string  `json:"id"`
	Name *string `json:"name,omitempty"`
	IdleTerms
}

// IdleTerms are what a checker asks; times are in seconds.
type IdleTerms struct {
	Description  *string          `json:"description,omitempty"`
	Enabled      *bool            `json:"enabled,omitempty"`
	Timeout      *int             `json:"timeout,omitempty"`
	Grace        *int             `json:"grace,omitempty"`
	NewUserGrace *int             `json:"newUserGrace,omitempty"`
	Warning      *int             `json:"warning,omitempty"`
	Match        *string          `json:"match,omitempty"`
	Thresholds   *[]IdleThreshold `json:"thresholds,omitempty"`
	SessionTypes *[]string        `json:"sessionTypes,omitempty"`
}

type idleCheckerPayload struct {
	Checker IdleChecker `json:"checker"`
}

var createIdleChecker = define[payload[idleCheckerPayload]](`mutation CreateIdleChecker($input: CreateIdleCheckerInput!) {
  payload: createIdleChecker(input: $input) { checker { ...idleCheckerFields } }
}`, idleCheckerFields)

// CreateIdleChecker makes a checker, which binds nothing yet.
func (c *Client) CreateIdleChecker(ctx context.Context, in CreateIdleCheckerInput) (*IdleChecker, error) {
	out, err := change(ctx, c, createIdleChecker, in)
	return &out.Checker, err
}

var updateIdleChecker = define[payload[idleCheckerPayload]](`mutation UpdateIdleChecker($input: UpdateIdleCheckerInput!) {
  payload: updateIdleChecker(input: $input) { checker { ...idleCheckerFields } }
}`, idleCheckerFields)

// UpdateIdleChecker changes a checker.
func (c *Client) UpdateIdleChecker(ctx context.Context, in UpdateIdleCheckerInput) (*IdleChecker, error) {
	out, err := change(ctx, c, updateIdleChecker, in)
	return &out.Checker, err
}

var deleteIdleChecker = define[payload[idOf]](`mutation DeleteIdleChecker($input: DeleteIdleCheckerInput!) {
  payload: deleteIdleChecker(input: $input) { id }
}`)

// DeleteIdleChecker removes a checker and all that it binds.
func (c *Client) DeleteIdleChecker(ctx context.Context, id string) error {
	_, err := change(ctx, c, deleteIdleChecker, idOf{id})
	return err
}

// IdlePlace is a domain, a project or a resource group; empty is everything.
type IdlePlace struct {
	Domain        string `json:"domain,omitempty"`
	Project       string `json:"project,omitempty"`
	ResourceGroup string `json:"resourceGroup,omitempty"`
}

// BindIdleInput is a checker and a place where it is, or is no longer, in force.
type BindIdleInput struct {
	Checker string `json:"checker"`
	IdlePlace
}

var bindIdleChecker = define[payload[idleCheckerPayload]](`mutation BindIdleChecker($input: BindIdleCheckerInput!) {
  payload: bindIdleChecker(input: $input) { checker { ...idleCheckerFields } }
}`, idleCheckerFields)

// BindIdleChecker puts a checker in force in a place.
func (c *Client) BindIdleChecker(ctx context.Context, in BindIdleInput) (*IdleChecker, error) {
	out, err := change(ctx, c, bindIdleChecker, in)
	return &out.Checker, err
}

var unbindIdleChecker = define[payload[idleCheckerPayload]](`mutation UnbindIdleChecker($input: UnbindIdleCheckerInput!) {
  payload: unbindIdleChecker(input: $input) { checker { ...idleCheckerFields } }
}`, idleCheckerFields)

// UnbindIdleChecker takes a binding away.
func (c *Client) UnbindIdleChecker(ctx context.Context, in BindIdleInput) (*IdleChecker, error) {
	out, err := change(ctx, c, unbindIdleChecker, in)
	return &out.Checker, err
}

// IdleDryRun is what a checker would do at this moment.
type IdleDryRun struct {
	Examined int `json:"examined"`
	Ending   int `json:"ending"` // now
	Unknown  int `json:"unknown"`
	Exempt   int `json:"exempt"`
	Sessions []struct {
		Session struct {
			ID    string   `json:"id"`
			Name  string   `json:"name"`
			Owner *UserRef `json:"owner"`
		} `json:"session"`
		EndsAt time.Time `json:"endsAt"`
		Now    bool      `json:"now"`
		Reason string    `json:"reason"`
	} `json:"sessions"`
}

var idleDryRun = define[struct {
	IdleDryRun IdleDryRun `json:"idleDryRun"`
}](`query IdleDryRun($checker: ID, $input: CreateIdleCheckerInput, $domain: ID, $project: ID, $resourceGroup: ID) {
  idleDryRun(checker: $checker, input: $input, domain: $domain, project: $project, resourceGroup: $resourceGroup) {
    examined ending unknown exempt sessions { session { id name owner { id email } } endsAt now reason }
  }
}`)

// IdleDryRun tries a checker by its id, or one to be made, where it is bound or in
// a place.
func (c *Client) IdleDryRun(ctx context.Context, checker string, in *CreateIdleCheckerInput, at IdlePlace) (*IdleDryRun, error) {
	v := vars{}
	for name, id := range map[string]string{"checker": checker, "domain": at.Domain, "project": at.Project, "resourceGroup": at.ResourceGroup} {
		if id != "" {
			v[name] = id
		}
	}
	if in != nil {
		v["input"] = in
	}
	out, err := idleDryRun.run(ctx, c, v)
	return &out.IdleDryRun, err
}

var setSessionIdleExempt = define[payload[struct {
	Session SessionRef `json:"session"`
}]](`mutation SetSessionIdleExempt($input: SetSessionIdleExemptInput!) {
  payload: setSessionIdleExempt(input: $input) { session { id name status } }
}`)

// SetSessionIdleExempt takes a session out of all idle checks, or back in.
func (c *Client) SetSessionIdleExempt(ctx context.Context, id string, exempt bool) error {
	_, err := change(ctx, c, setSessionIdleExempt, struct {
		ID     string `json:"id"`
		Exempt bool   `json:"exempt"`
	}{id, exempt})
	return err
}

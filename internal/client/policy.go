package client

import (
	"context"
	"time"

	"github.com/berthhq/berth/internal/resource"
)

// Policy is a set of limits; what is nil is not limited.
type Policy struct {
	ID                      string         `json:"id"`
	Name                    string         `json:"name"`
	TotalSlots              resource.Slots `json:"totalSlots"`
	UnlistedSlots           string         `json:"unlistedSlots"`
	MaxPendingSlots         resource.Slots `json:"maxPendingSlots"`
	MaxSessions             *int           `json:"maxSessions"`
	MaxPendingSessions      *int           `json:"maxPendingSessions"`
	MaxContainersPerSession *int           `json:"maxContainersPerSession"`
	MaxPriority             *int           `json:"maxPriority"`
	MaxSessionLifetime      *int           `json:"maxSessionLifetime"` // seconds
	IdleTimeout             *int           `json:"idleTimeout"`        // seconds
	MaxVfolders             *int           `json:"maxVfolders"`
	MaxScopeBytes           *int64         `json:"maxScopeBytes"`
	MaxDiskBytes            *int64         `json:"maxDiskBytes"` // of each container of a session
	MaxLogins               *int           `json:"maxLogins"`
	CreatedAt               time.Time      `json:"createdAt"`
	// Attachments are where it binds, as far as one sees.
	Attachments []Attachment `json:"attachments"`
}

const policyFields = `fragment policyFields on ResourcePolicy {
  id name totalSlots unlistedSlots maxPendingSlots maxSessions maxPendingSessions maxContainersPerSession
  maxPriority maxSessionLifetime idleTimeout maxVfolders maxScopeBytes maxDiskBytes
  maxLogins createdAt attachments { ...attachmentFields }
}`

var listPolicies = define[struct {
	ResourcePolicies connection[Policy] `json:"resourcePolicies"`
}](`query ResourcePolicies($first: Int, $after: Cursor, $where: ResourcePolicyWhereInput) {
  resourcePolicies(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
    edges { node { ...policyFields } } pageInfo { hasNextPage endCursor }
  }
}`, policyFields, attachmentFields)

// Policies lists resource policies in sight; name "" means all.
func (c *Client) Policies(ctx context.Context, name string) ([]Policy, error) {
	return collect(0, vars{"where": nameIs(name)}, func(v vars) (connection[Policy], error) {
		out, err := listPolicies.run(ctx, c, v)
		return out.ResourcePolicies, err
	})
}

// PolicyInput is a new policy, without an ID, or a change to one: then -1 takes
// a limit away, and slots replace all that were there.
type PolicyInput struct {
	ID                      string          `json:"id,omitempty"`
	Name                    *string         `json:"name,omitempty"`
	TotalSlots              *resource.Slots `json:"totalSlots,omitempty"`
	UnlistedSlots           *string         `json:"unlistedSlots,omitempty"`
	MaxPendingSlots         *resource.Slots `json:"maxPendingSlots,omitempty"`
	MaxSessions             *int            `json:"maxSessions,omitempty"`
	MaxPendingSessions      *int            `json:"maxPendingSessions,omitempty"`
	MaxContainersPerSession *int            `json:"maxContainersPerSession,omitempty"`
	MaxPriority             *int            `json:"maxPriority,omitempty"`
	MaxSessionLifetime      *int            `json:"maxSessionLifetime,omitempty"` // seconds
	IdleTimeout             *int            `json:"idleTimeout,omitempty"`        // seconds
	MaxVfolders             *int            `json:"maxVfolders,omitempty"`
	MaxScopeBytes           *int64          `json:"maxScopeBytes,omitempty"`
	MaxDiskBytes            *int64          `json:"maxDiskBytes,omitempty"`
	MaxLogins               *int            `json:"maxLogins,omitempty"`
}

type policyPayload struct {
	Policy Policy `json:"policy"`
}

var createPolicy = define[payload[policyPayload]](`mutation CreateResourcePolicy($input: CreateResourcePolicyInput!) {
  payload: createResourcePolicy(input: $input) { policy { ...policyFields } }
}`, policyFields, attachmentFields)

// CreatePolicy makes a resource policy.
func (c *Client) CreatePolicy(ctx context.Context, in PolicyInput) (*Policy, error) {
	out, err := change(ctx, c, createPolicy, in)
	return &out.Policy, err
}

var updatePolicy = define[payload[policyPayload]](`mutation UpdateResourcePolicy($input: UpdateResourcePolicyInput!) {
  payload: updateResourcePolicy(input: $input) { policy { ...policyFields } }
}`, policyFields, attachmentFields)

// UpdatePolicy changes a resource policy.
func (c *Client) UpdatePolicy(ctx context.Context, in PolicyInput) (*Policy, error) {
	out, err := change(ctx, c, updatePolicy, in)
	return &out.Policy, err
}

var deletePolicy = define[payload[idOf]](`mutation DeleteResourcePolicy($input: DeleteResourcePolicyInput!) {
  payload: deleteResourcePolicy(input: $input) { id }
}`)

// DeletePolicy removes a policy that is attached nowhere.
func (c *Client) DeletePolicy(ctx context.Context, id string) error {
	_, err := change(ctx, c, deletePolicy, idOf{id})
	return err
}

// Attachment is a policy where it binds.
type Attachment struct {
	ID            string   `json:"id"`
	Policy        Ref      `json:"policy"`
	Domain        *Ref     `json:"domain"`
	Project       *Ref     `json:"project"`
	User          *UserRef `json:"user"`
	KeypairID     *string  `json:"keypairID"`
	ResourceGroup *Ref     `json:"resourceGroup"`
	WithinProject *Ref     `json:"withinProject"`
}

const attachmentFields = `fragment attachmentFields on PolicyAttachment {
  id policy { id name } domain { id name } project { id name } user { id email } keypairID
  resourceGroup { id name } withinProject { id name }
}`

// Holder names exactly one of domain, project, user and keypair by its id.
type Holder struct {
	Domain  string `json:"domain,omitempty"`
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Keypair string `json:"keypair,omitempty"`
}

// AttachInput binds a policy to a holder, narrowed to a resource group or, of
// a user, to a project; without a Policy it takes away what is bound there.
type AttachInput struct {
	Holder
	Policy        string `json:"policy,omitempty"`
	ResourceGroup string `json:"resourceGroup,omitempty"`
	WithinProject string `json:"withinProject,omitempty"`
}

var attachPolicy = define[payload[struct {
	Policy     *Policy     `json:"policy"`
	Attachment *Attachment `json:"attachment"`
}]](`mutation AttachResourcePolicy($input: AttachResourcePolicyInput!) {
  payload: attachResourcePolicy(input: $input) { policy { ...policyFields } attachment { ...attachmentFields } }
}`, policyFields, attachmentFields)

// AttachPolicy binds a policy in place of what was bound there; the result is
// nil when nothing is bound any more.
func (c *Client) AttachPolicy(ctx context.Context, in AttachInput) (*Attachment, error) {
	out, err := change(ctx, c, attachPolicy, in)
	return out.Attachment, err
}

var detachPolicy = define[payload[idOf]](`mutation DetachResourcePolicy($input: DetachResourcePolicyInput!) {
  payload: detachResourcePolicy(input: $input) { id }
}`)

// DetachPolicy takes an attachment away by its id.
func (c *Client) DetachPolicy(ctx context.Context, attachment string) error {
	_, err := change(ctx, c, detachPolicy, idOf{attachment})
	return err
}

// LimitReached is a limit that stands in the way; amounts are decimals.
type LimitReached struct {
	Scope         string `json:"scope"`  // keypair, user, project or domain
	Holder        string `json:"holder"` // its name
	ResourceGroup string `json:"resourceGroup"`
	WithinProject string `json:"withinProject"`
	Policy        string `json:"policy"`
	What          string `json:"what"`
	Used          string `json:"used"`
	Requested     string `json:"requested"`
	Limit         string `json:"limit"`
}

// EffectiveLimit is what may still be had of one thing, and why.
type EffectiveLimit struct {
	What          string  `json:"what"`
	Limit         string  `json:"limit"`
	Used          string  `json:"used"`
	Assignable    string  `json:"assignable"`
	Scope         string  `json:"scope"`
	Holder        string  `json:"holder"`
	Policy        string  `json:"policy"`
	ResourceGroup *string `json:"resourceGroup"`
	WithinProject *string `json:"withinProject"`
}

// Place says whose limits are asked for, where; by ids.
type Place struct {
	Domain        string `json:"domain,omitempty"`
	Project       string `json:"project,omitempty"`
	User          string `json:"user,omitempty"`
	ResourceGroup string `json:"resourceGroup,omitempty"`
}

var effectiveLimits = define[struct {
	EffectiveLimits []EffectiveLimit `json:"effectiveLimits"`
}](`query EffectiveLimits($domain: ID, $project: ID, $user: ID, $resourceGroup: ID) {
  effectiveLimits(domain: $domain, project: $project, user: $user, resourceGroup: $resourceGroup) {
    what limit used assignable scope holder policy resourceGroup withinProject
  }
}`)

// EffectiveLimits tells what may still be had; the zero Place is one's own.
func (c *Client) EffectiveLimits(ctx context.Context, at Place) ([]EffectiveLimit, error) {
	v := vars{}
	put(v, "domain", at.Domain)
	put(v, "project", at.Project)
	put(v, "user", at.User)
	put(v, "resourceGroup", at.ResourceGroup)
	out, err := effectiveLimits.run(ctx, c, v)
	return out.EffectiveLimits, err
}

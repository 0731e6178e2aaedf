// Package identity writes domains, projects, users and memberships, and makes
// the first of each. Reading them is ent's business.
package identity

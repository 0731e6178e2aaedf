// Package identity writes domains, projects, users and memberships, and creates the first of
// each. They are read through ent.
package identity

// Package idle ends sessions that are of no use any more. Checkers say what that
// means: they are kept as objects and bound to domains, projects, resource groups
// or everything. The leader looks at all running sessions again and again, warns
// the owners and ends what is over. What it does not know counts as use.
package idle

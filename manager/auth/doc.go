// Package auth authenticates requests: passwords and login cookies of browsers, access tokens
// and keypairs of programs. It revokes credentials together with the connections that use
// them, and throttles attempts to guess.
package auth

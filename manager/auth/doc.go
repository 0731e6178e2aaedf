// Package auth finds out who asks: passwords and login cookies of browsers,
// access tokens of programs. It ends them, together with every connection that
// was opened with them, and slows down who guesses.
package auth
